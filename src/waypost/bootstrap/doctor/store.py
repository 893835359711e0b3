"""The store: whether it can be opened and written to, its schema, its soundness, its sizes, its server's clock."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from waypost.bootstrap import features
from waypost.bootstrap.doctor.clock import clock_of_server
from waypost.bootstrap.doctor.findings import Finding, ok, problem, size, skipped, span, warning
from waypost.bootstrap.doctor.machine import folder_of
from waypost.bootstrap.opening import look_at_store
from waypost.config import Config
from waypost.domain.errors import ConfigurationError, ErrorCode, StorageBroken, StorageFull, Unavailable, WaypostError
from waypost.stores.sql.checkup import PATIENCE_S, Checkup
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.migrations import is_known, latest

STORE: Final = "store"
_TRIAL_BYTES: Final = 64 * 1_024
_LONG_LOG_BYTES: Final = 1_000_000_000
"""A write-ahead log beyond this is not given back: somebody holds it."""
_LONG_TRANSACTION_S: Final = 3_600


def look_at_the_store(config: Config) -> tuple[list[Finding], Checkup | None]:
    """Look at the store of *config*; with it what there is to know of it, where it can be opened and has tables."""
    written = list(_written(folder_of(config)))
    try:
        name = look_at_store(config)
        found = engine_of(config.store).check_up(features.tables())
    except WaypostError as refused:
        return [*written, problem(STORE, "open", str(refused), _do_about(refused))], None
    if found is None or found.revision is None:
        return [*written, skipped(STORE, "schema", f"{name}, without tables yet: `waypost serve` makes them")], None
    said = [ok(STORE, "open", name), _schema(found.revision, found), *_sizes(found), _soundness(found)]
    return [*written, *said, *clock_of_server(found.clock_ahead_s)], found


def _written(folder: Path) -> Iterator[Finding]:
    """Write a file and have the disk keep it: a full, read-only or failing one shows at once."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".doctor") as trial:
            trial.write(bytes(_TRIAL_BYTES))
            trial.flush()
            os.fsync(trial.fileno())
    except OSError as failed:
        do = "give the service's user a folder with room that it may write to, and run this as that user"
        yield problem(STORE, "write", f"cannot write to {folder}: {failed.strerror}", do)
    else:
        yield ok(STORE, "write", f"{folder} takes what is written")


def _do_about(refused: WaypostError) -> str:
    match refused:
        case StorageFull():
            return "make room on its disk; docs/runbook.md#waypostdiskfull"
        case StorageBroken() if "upgrade Waypost" in str(refused):
            return "start the newer version, or restore the backup from before the upgrade; docs/upgrade.md#roll-back"
        case StorageBroken():
            return "restore a backup: docs/backup.md"
        case Unavailable() if refused.code is ErrorCode.STORAGE_AWAY:
            return "start the database server, and check address, password and pg_hba.conf; docs/postgres.md"
        case ConfigurationError():
            return "mend the setting, or the owner of what it names; docs/configuration.md"
        case _:
            return "look again in a minute: somebody holds it"


def _schema(found: str, checkup: Checkup) -> Finding:
    if found == latest():
        made = f", {len(checkup.missing)} tables are made at the next start" if checkup.missing else ""
        return ok(STORE, "schema", f"revision {found}{made}")
    if is_known(found):
        return ok(STORE, "schema", f"revision {found}, one ahead of this version, which works with it")
    saw = f"revision {found}, this version's is {latest()}"
    do = "back it up (`waypost backup`), then `waypost migrate` or `waypost serve`, which cannot be undone"
    return warning(STORE, "schema", saw, do)


def _sizes(found: Checkup) -> Iterator[Finding]:
    saw = f"{size(found.size_bytes)}, write-ahead log {size(found.log_bytes)}"
    if found.log_bytes > _LONG_LOG_BYTES:
        do = "find who keeps it: a reader that never ends, or a replication slot nobody reads (pg_replication_slots)"
        yield warning(STORE, "size", saw, do)
    else:
        yield ok(STORE, "size", saw)
    if found.oldest_transaction_s > _LONG_TRANSACTION_S:
        saw = f"a transaction has been open for {span(found.oldest_transaction_s)}"
        yield warning(STORE, "transactions", saw, "end it; docs/runbook.md#wayposttransactionopen")


def _soundness(found: Checkup) -> Finding:
    if found.damage:
        saw = f"damaged: {'; '.join(found.damage)}"
        return problem(STORE, "soundness", saw, "stop the service, keep the file, restore a backup: docs/backup.md")
    if found.is_checked:
        return ok(STORE, "soundness", "no damage seen")
    why = f"not checked to its end in {PATIENCE_S:.0f} s, or not readable while its service is down"
    return skipped(STORE, "soundness", f"{why}: check a copy that `waypost backup` made")
