"""The configuration, its credentials and their ends, and the servers beside the store: what ``check-config`` sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from waypost.bootstrap.credentials import ends_of, rehearsals_of
from waypost.bootstrap.doctor.findings import Finding, ok, problem, warning
from waypost.bootstrap.intake import server_tls
from waypost.bootstrap.opening import check_settings
from waypost.bootstrap.reach import reach
from waypost.bootstrap.senders import try_credentials
from waypost.bootstrap.stacks import check_log
from waypost.config import Config
from waypost.domain.errors import ConfigurationError, Unavailable
from waypost.domain.time import DAY_MS, Instant, isoformat
from waypost.runtime.credential_reload import REHEARSED_DAYS, URGENT_DAYS, days_left, ending

CONFIGURATION: Final = "configuration"
CREDENTIALS: Final = "credentials"
SERVERS: Final = "servers"
_MEND: Final = "mend this setting (docs/configuration.md), then `waypost check-config`"
_RENEW: Final = "renew it, put the file in place, `systemctl reload waypost`; docs/security.md#credentials"


def look_at_settings(config: Config, where: str) -> Finding:
    """Say whether a service could start with these settings, its store and credentials apart."""
    try:
        check_settings(config)
    except ConfigurationError as wrong:
        return problem(CONFIGURATION, wrong.path, str(wrong), _MEND)
    return ok(CONFIGURATION, where, f"{len(config.apps)} apps, {config.workers} workers, listens on {config.listen}")


async def look_at_credentials(config: Config, now: Instant) -> list[Finding]:
    """Read every credential and certificate as a service does, and say when each ends; nothing is sent."""
    try:
        tls = server_tls(config)
    except ConfigurationError as wrong:
        return [problem(CREDENTIALS, wrong.path, str(wrong), _MEND)]
    tried = {str(name): why for name, why in (await try_credentials(config)).items()} | dict.fromkeys(tls)
    ends, rehearsed = ends_of(config, tls), rehearsals_of(config.apps)
    findings = [_credential(name, why, ends.get(name), now) for name, why in tried.items()]
    return [*findings, *_unrehearsed(rehearsed, now)]


def _credential(name: str, why: str | None, ends_at: Instant | None, now: Instant) -> Finding:
    if why is not None:
        return problem(CREDENTIALS, name, why, "put the right file in place; docs/security.md#credentials")
    if ends_at is None:
        return ok(CREDENTIALS, name, "can be used; when it ends is not known")
    soon = ending(ends_at, now)
    saw = f"{soon or 'can be used; ends'} ({isoformat(ends_at)[:10]})"
    if soon is None:
        return ok(CREDENTIALS, name, saw)
    return (problem if days_left(ends_at, now) < URGENT_DAYS else warning)(CREDENTIALS, name, saw, _RENEW)


def _unrehearsed(rehearsed: dict[str, Instant], now: Instant) -> Iterator[Finding]:
    for name, at in rehearsed.items():
        if (days := (now - at) // DAY_MS) > REHEARSED_DAYS:
            do = "rehearse it; docs/runbook.md#waypostcredentialunrehearsed"
            yield warning(CREDENTIALS, name, f"its renewal was last rehearsed {days} days ago", do)


async def look_at_servers(config: Config) -> list[Finding]:
    """Connect to every server beside the store that the configuration names."""
    findings = [
        ok(SERVERS, each.name, each.what)
        if each.problem is None
        else problem(SERVERS, each.name, each.problem, _do_about(each.name))
        for each in await reach(config)
    ]
    try:
        log = await asyncio.to_thread(check_log, config)
    except (ConfigurationError, Unavailable) as refused:
        return [*findings, problem(SERVERS, "log", str(refused), _do_about("kafka"))]
    return findings if log is None else [*findings, ok(SERVERS, "log", log)]


def _do_about(server: str) -> str:
    page = {
        "postgresql": "postgres",
        "redis": "redis",
        "kafka": "kafka",
        "cassandra": "cassandra",
        "dashboard.oidc": "dashboard",
    }.get(server, "streams")
    return f"start it, check its address and access, and what docs/{page}.md asks of it"
