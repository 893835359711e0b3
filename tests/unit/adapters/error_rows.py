"""Every error of every provider as one printed table."""

from __future__ import annotations

import re

from tests.tables import AddRow
from waypost.domain.breaker import Rest
from waypost.domain.delivery import Receipt
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Reach, Refused, Throttled, outcome_name
from waypost.domain.settlement import Settlement

TITLE = "every error of every provider"


def rest_after(outcome: Outcome) -> Rest | None:
    """What the breaker says after a first refusal: it opens at once, unless one device may be meant alone."""
    opens = isinstance(outcome, CredentialRejected) and outcome.reach is not Reach.DEVICE
    return Rest("breaker:demo/x", 7_500) if opens else None


def reach_of(outcome: Outcome, scope: str, busy: str = "credential") -> str:
    """How far an answer speaks, in the words of the operators' pages; *scope* is what the provider's parts are.

    *busy* is what asks for patience, where it is not one device.
    """
    match outcome:
        case Gone():
            return "token"
        case Refused():
            return "message"
        case CredentialRejected(reach=reach):
            return scope if reach is Reach.SCOPE else reach
        case Throttled(whole=whole):
            return busy if whole else "device"
        case _:
            return "attempt"


def rows_of_page(text: str) -> dict[str, tuple[str, ...]]:
    """The cells beside each code that a table of an operators' page names; codes of one meaning share a row."""
    rows: dict[str, tuple[str, ...]] = {}
    for line in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE):
        codes, *cells = line.split(" | ")
        for code in re.findall(r"`([^`]+)`", codes):
            assert code not in rows, f"{code} stands there twice"
            rows[code] = tuple(cells)
    return rows


def add_error_row(
    table: AddRow, provider: str, status: int, outcome: Outcome, settlement: Settlement, stored: Receipt
) -> None:
    """What one answer leads to, and where an operator meets it: the credential's health, dead letters, the receipt."""
    if isinstance(outcome, CredentialRejected):
        sees = f"{outcome.reach} denied: {outcome.why}"
    elif stored.dead:
        sees = f"dead letter: {stored.reason}"
    else:
        sees = f"receipt: {stored.reason or stored.code}"
    table(
        TITLE,
        provider=provider,
        status=status,
        code=stored.code,
        outcome=outcome_name(type(outcome)),
        reach=reach_of(outcome, "scope"),
        settlement=type(settlement).__name__.lower(),
        stored=f"{stored.status}{', parked' if stored.parked else ''}",
        operator=sees,
    )
