"""The archive: whether it can be reached, and which of its files are lost or damaged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.doctor.findings import Finding, ok, problem
from waypost.config import Config
from waypost.domain.errors import Unavailable
from waypost.features.archive.parts import bucket_of
from waypost.ports.archive import Fault

if TYPE_CHECKING:
    from waypost.stores.sql.archive import SqlArchive

ARCHIVE: Final = "archive"
_NAMED: Final = 10
"""The most files that are named one by one."""
_PAGE: Final = 500
_DO: Final = "put a copy of it in its place, or `waypost archive forget`; docs/runbook.md#waypostarchivefiledamaged"


async def look_at_archive(config: Config) -> list[Finding]:
    """List what lies there, without reading it, and name what is missing and what was met and is not whole."""
    settings = config.features["archive"]
    async with open_admin_store(config) as store:
        try:
            there = set(await asyncio.to_thread(bucket_of(settings).paths))
        except Unavailable as away:
            return [problem(ARCHIVE, settings.to, str(away), "mend it: nothing old leaves the store meanwhile")]
        known, missing = await _missing(store.archive, there)
        noted = {each.path: each.fault for each in await store.archive.faults.all()}
    faults = noted | dict.fromkeys(missing, Fault.AWAY)
    if not faults:
        return [ok(ARCHIVE, settings.to, f"{known:,} files; `waypost archive verify` reads them")]
    named = [problem(ARCHIVE, path, str(faults[path]), _DO) for path in sorted(faults)[:_NAMED]]
    if (more := len(faults) - len(named)) > 0:
        named.append(problem(ARCHIVE, "more", f"{more:,} other files", "`waypost archive verify` names them all"))
    return named


async def _missing(manifest: SqlArchive, there: set[str]) -> tuple[int, list[str]]:
    """Count the files of the manifest, and list those that are not *there*."""
    n, missing, after = 0, list[str](), ("", b"")
    while page := await manifest.all(after, _PAGE):
        n += len(page)
        missing += [each.path for each in page if each.path not in there]
        after = page[-1].app, bytes(page[-1].first_id)
    return n, missing
