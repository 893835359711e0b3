"""The balance at the end of a scenario, in its table."""

from __future__ import annotations

from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, settled


def balance(stack: BenchStack, scenario: str, submitted: int) -> list[Row]:
    """Wait until all is final, hold store and gateway against each other, and say what became of it.

    AssertionError where anything was lost, or sent twice.
    """
    ledger = settled(stack, submitted)
    sent, otherwise = ledger.receipts.get("sent", 0), sum(ledger.receipts.values()) - ledger.receipts.get("sent", 0)
    return [
        row(scenario, "accepted", ledger.accepted, "", f"{submitted:,} submitted", ledger.accepted / submitted),
        row(scenario, "deliveries sent", sent, ""),
        row(scenario, "deliveries ended otherwise (dead tokens)", otherwise, ""),
        row(scenario, "lost", 0, "", "0 wanted"),
        row(scenario, "sent twice", 0, "", "0 wanted"),
    ]
