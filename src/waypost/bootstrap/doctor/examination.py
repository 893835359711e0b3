"""The order in which everything is looked at; what fails in a way nobody thought of is a finding, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from waypost.bootstrap.doctor.archived import ARCHIVE, look_at_archive
from waypost.bootstrap.doctor.clock import Watch
from waypost.bootstrap.doctor.configured import look_at_credentials, look_at_servers, look_at_settings
from waypost.bootstrap.doctor.findings import Finding, problem, skipped
from waypost.bootstrap.doctor.machine import look_at_machine
from waypost.bootstrap.doctor.providers import look_at_providers
from waypost.bootstrap.doctor.queue import QUEUE, look_at_queue
from waypost.bootstrap.doctor.service import look_at_service
from waypost.bootstrap.doctor.store import look_at_the_store
from waypost.bootstrap.doctor.versions import look_at_versions
from waypost.config import Config
from waypost.domain.errors import WaypostError
from waypost.features.archive.settings import archives
from waypost.runtime.clock import SystemClock
from waypost.stores.sql.checkup import Checkup
from waypost.stores.sql.migrations import latest

_BUG: Final = "this look failed: report it with its text, and go on by docs/runbook.md"


async def examine(config: Config, where: str, *, offline: bool) -> AsyncIterator[Finding]:
    """Look at everything, and yield what was found as it is found; *where* is the configuration's place."""
    now, watch, checkups = SystemClock().now(), Watch(), list[Checkup | None]()

    def store() -> Sequence[Finding]:
        findings, checkup = look_at_the_store(config)
        checkups.append(checkup)
        return findings

    def is_readable() -> bool:
        checkup = checkups[0] if checkups else None
        return not (checkup is None or checkup.revision != latest() or checkup.damage or checkup.missing)

    async def queue() -> Sequence[Finding]:
        if not is_readable():
            return [skipped(QUEUE, "open", "the store has no queue that this version can read")]
        return await look_at_queue(config, now)

    async def archive() -> Sequence[Finding]:
        if not archives(config):
            return []
        if not is_readable():
            return [skipped(ARCHIVE, "files", "the store does not say which there are")]
        return await look_at_archive(config)

    looks: list[tuple[str, Callable[[], Awaitable[Sequence[Finding]]]]] = [
        ("versions", lambda: asyncio.to_thread(lambda: [*look_at_versions(config)])),
        ("limits", lambda: asyncio.to_thread(lambda: [*look_at_machine(config)])),
        ("configuration", lambda: asyncio.to_thread(lambda: [look_at_settings(config, where)])),
        ("credentials", lambda: look_at_credentials(config, now)),
        ("store", lambda: asyncio.to_thread(store)),
        ("servers", lambda: look_at_servers(config)),
        ("queue", queue),
        (ARCHIVE, archive),
        ("service", lambda: look_at_service(config)),
        ("providers", lambda: look_at_providers(config, offline=offline)),
    ]
    for check, look in looks:
        for finding in await _guarded(check, look):
            yield finding
    yield watch.look()


async def _guarded(check: str, look: Callable[[], Awaitable[Sequence[Finding]]]) -> Sequence[Finding]:
    try:
        return await look()
    except WaypostError as refused:
        return [problem(check, "refused", str(refused), "see what else is said here; docs/errors.md")]
    except Exception as surprise:  # noqa: BLE001 - what else is wrong is to be said, too
        return [problem(check, type(surprise).__name__, f"{surprise}", _BUG)]
