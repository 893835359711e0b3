"""What waits in the store, and what has failed there: with or without a service that runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from waypost.bootstrap.admin import open_admin_store
from waypost.bootstrap.doctor.findings import Finding, ok, problem, skipped, span, warning
from waypost.config import Config, Stack
from waypost.domain.backlog import LATE_AFTER_S
from waypost.domain.balance import Sheet, Waiting, together
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import DAY_MS, SECOND_MS, Instant, later
from waypost.ports.recovery import AlertQuery
from waypost.ports.views import DeadQuery
from waypost.stores.sql.lease import oldest_fresh
from waypost.stores.sql.store import Store

QUEUE: Final = "queue"
_SHOWN: Final = 100
_FOR_BREAKERS: Final = "breaker:"


async def look_at_queue(config: Config, now: Instant) -> list[Finding]:
    """Look at what is open, late, parked, dead or stuck in a store that has today's schema."""
    async with open_admin_store(config) as store:
        sheet = await store.balance.read()
        findings = [_open(sheet), _balance(sheet), await _dead(store, config, now), await _stuck(store, config)]
        if config.stack is Stack.LOG:
            return [*findings, skipped(QUEUE, "oldest", "accepted work is in Kafka: see what the service says")]
        findings += _late(await store.database.read(oldest_fresh), now)
        return [*findings, *_parked(await store.work.conditions())]


def _open(sheet: Sheet) -> Finding:
    every = together(sheet.balances.values())
    waiting = {place: every.deliveries.open.get(place, 0) for place in Waiting}
    scheduled = every.notifications.open.get(Waiting.SCHEDULED, 0)
    still = sum(every.notifications.open.values())
    saw = f"{still:,} notifications, {scheduled:,} of them scheduled; deliveries: "
    return ok(QUEUE, "open", saw + ", ".join(f"{waiting[each]:,} {each}" for each in waiting if each in _PLACES))


_PLACES: Final = {Waiting.WAITING, Waiting.PARKED, Waiting.UNDER_WAY}


def _balance(sheet: Sheet) -> Finding:
    if not any(balance.differences for balance in sheet.balances.values()):
        return ok(QUEUE, "balance", "all that was accepted is somewhere")
    do = "`waypost balance --audit` says which; docs/runbook.md#waypostbalanceoff"
    return problem(QUEUE, "balance", "it does not add up", do)


async def _dead(store: Store, config: Config, now: Instant) -> Finding:
    since = later(now, -DAY_MS)
    found = [await store.views.dead(DeadQuery(app, since=since, limit=_SHOWN)) for app in config.apps]
    n = sum(len(each) for each in found)
    saw = f"{n}{'+' if any(len(each) == _SHOWN for each in found) else ''} failed for good within a day"
    if n < _SHOWN:
        return ok(QUEUE, "dead", saw)
    return warning(QUEUE, "dead", saw, "`waypost dead list` says why; docs/runbook.md#waypostdeadletters")


async def _stuck(store: Store, config: Config) -> Finding:
    found = [await store.recovery.alerts(AlertQuery(app, resolved=False, limit=_SHOWN)) for app in config.apps]
    n = sum(len(each) for each in found)
    if not n:
        return ok(QUEUE, "alerts", "none is open")
    do = "`waypost alerts list --open`, then retry or resolve each; docs/runbook.md#waypostnotificationstuck"
    return warning(QUEUE, "alerts", f"{n} open: notifications that nobody moves", do)


def _late(accepted: Mapping[tuple[Lane, AppId], Instant], now: Instant) -> Iterator[Finding]:
    oldest: dict[Lane, float] = {}
    for (lane, _), at in accepted.items():
        oldest[lane] = max(oldest.get(lane, 0.0), (now - at) / SECOND_MS)
    late = {lane: waited_s for lane, waited_s in oldest.items() if waited_s > LATE_AFTER_S[lane]}
    for lane, waited_s in late.items():
        saw = f"the oldest in lane {lane} has waited for {span(waited_s)}"
        yield warning(QUEUE, "oldest", saw, "is a service running that delivers? docs/runbook.md#waypostlate")
    if not late:
        saw = f"the oldest has waited for {span(max(oldest.values()))}" if oldest else "nothing waits to be sent"
        yield ok(QUEUE, "oldest", saw)


def _parked(conditions: frozenset[str]) -> Iterator[Finding]:
    stopped = sorted(each.removeprefix(_FOR_BREAKERS) for each in conditions if each.startswith(_FOR_BREAKERS))
    if not stopped:
        yield ok(QUEUE, "breakers", "nothing waits for a provider to come back")
        return
    do = "`breaker.opened` in the log says why; docs/runbook.md#waypostproviderstopped"
    yield warning(QUEUE, "breakers", f"deliveries wait for {', '.join(stopped)}", do)
