"""Record: from the log to the ledger, again and again; a crash repeats, and repeating changes nothing."""

from __future__ import annotations

from waypost.ports.ledger import Ledger, RecordedLog

_INTENTS = 500


async def record(log: RecordedLog, ledger: Ledger) -> int:
    """Write down what comes next; how many entries that was."""
    batch = await log.read()
    if batch:
        await ledger.record(batch)
        await log.advance()
    else:  # nothing said otherwise up to now
        await ledger.close_intents(_INTENTS)
    if (until := await log.passed()) is not None:
        await ledger.complete(until)
    return len(batch)
