"""Record: from the log to the ledger, again and again; a crash repeats, and repeating changes nothing."""

from __future__ import annotations

from waypost.ports.ledger import Ledger, RecordedLog

_INTENTS = 500


async def record(log: RecordedLog, ledger: Ledger) -> bool:
    """Write down what comes next; return whether there was something."""
    batch = await log.read()
    if not batch.marks:  # nothing said otherwise up to now
        await ledger.close_intents(_INTENTS)
    elif await ledger.record(batch.entries, batch.marks):
        await log.advance()
    else:
        await log.begin_again()
    if (completed := await log.passed()) is not None:
        await ledger.complete(completed)
    return bool(batch.marks)
