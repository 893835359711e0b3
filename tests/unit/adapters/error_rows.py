"""Every error of every provider as one printed table."""

from __future__ import annotations

from tests.tables import AddRow
from waypost.domain.delivery import Receipt
from waypost.domain.outcome import Denied, Outcome
from waypost.domain.settlement import Settlement

TITLE = "every error of every provider"


def add_error_row(
    table: AddRow, provider: str, status: int, outcome: Outcome, settlement: Settlement, stored: Receipt
) -> None:
    """What one answer leads to, and where an operator meets it: the credential's health, dead letters, the receipt."""
    if isinstance(outcome, Denied):
        sees = f"credential denied: {outcome.why}"
    elif stored.dead:
        sees = f"dead letter: {stored.reason}"
    else:
        sees = f"receipt: {stored.reason or stored.code}"
    table(
        TITLE,
        provider=provider,
        status=status,
        code=stored.code,
        outcome=type(outcome).__name__.lower(),
        settlement=type(settlement).__name__.lower(),
        stored=f"{stored.status}{', parked' if stored.parked else ''}",
        operator=sees,
    )
