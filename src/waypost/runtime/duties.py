"""Duties: the work beside delivering, each done by one process at a time of those that have its role."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import Struct

from waypost.domain.amendment import Withdraw
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.time import DAY_MS, Instant, later
from waypost.pipeline.age import NOTHING, DeviceAges, age
from waypost.pipeline.erase import erase
from waypost.pipeline.expand import Failures, Paces, expand
from waypost.pipeline.report import PAGE as REPORTED_PAGE
from waypost.pipeline.report import READER, report
from waypost.pipeline.sweep import Stores, sweep
from waypost.pipeline.tail import PAGE as READ_PAGE
from waypost.pipeline.tail import Reader, tail
from waypost.ports.bulk import Bulk
from waypost.ports.changes import Changes
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.erasure import Erasure, Erasures
from waypost.ports.journal import Journal
from waypost.ports.ownership import Ownership
from waypost.ports.retention import Retention
from waypost.ports.work import Work
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.roles import Role
from waypost.runtime.ticker import ELSEWHERE, UNTIL_WRITTEN, Rest, Ticker
from waypost.telemetry import Event, Metric

REPORT_S = 0.25
REGISTRY_S = 1.0
"""Seconds between two reports to the registry: the more uses of devices come together, the fewer pages are written."""
PROMPT_S = 0.02
"""Seconds between two reads of a prompt reader at least: what is written in between is read together."""
RECORD_S = 0.05
SWEEP_S = 60.0
ERASE_S = 2.0
AGE_S = 60.0
ERASURES_AT_ONCE = 10
EXPAND_S = 0.1
TIDY_S = 0.5
TIDY_PAGE = 500


class Duty(NamedTuple):
    """A task that the holder of a role repeats."""

    role: Role
    name: str
    every_s: float
    act: Callable[[], Awaitable[Rest | None]]


class DutyContext(Struct, frozen=True):
    """The ports that duties work with."""

    work: Work
    devices: Devices
    journal: Journal
    dedup: Dedup
    retention: Retention
    bulk: Bulk
    erasures: Erasures
    keep_days: int
    """Days that finished notifications are kept."""
    record: Callable[[], Awaitable[bool]] | None = None
    """Writes on the ledger, where a log is ahead of it; returns whether it found something to write."""
    shares_recording: bool = False
    """Whether all processes record at once, each its own part of the log."""
    readers: Sequence[Reader] = ()
    """The journal readers of features."""
    duties: Sequence[Duty] = ()
    """The duties of features."""
    erases: Sequence[Callable[[Erasure], Awaitable[None]]] = ()
    """Functions that remove a user from the rows of features."""
    deletes_dead: frozenset[AppId] = frozenset()
    """The apps whose dead devices are deleted."""
    ages: DeviceAges = DeviceAges()
    deletes_erased: bool = False
    """Whether nothing is left of an erased user's notifications."""
    changes: Changes | None = None
    """The changes of the store that the duties read: those that find nothing to do rest until there are any."""
    quiet_until: Callable[[], Instant | None] = lambda: None
    """Tells before when nothing of ``work`` is due, if nothing is written until then; None where nobody knows."""
    measures: Sequence[Callable[[], None]] = ()
    """Functions that set gauges of what this process uses; each process calls them now and then."""
    drops: Mapping[str, Callable[[Instant], Awaitable[int]]] = {}
    """Functions that delete a page of old rows of a feature, by its name."""


class Duties:
    """The duties of one process."""

    def __init__(
        self,
        context: DeliveryContext,
        duty_context: DutyContext,
        ownership: Ownership,
        expanded: Callable[[Lane], None],
    ) -> None:
        """Create the duties; *expanded* is called with the lane that recipients of a bulk job came into."""
        self._context = context
        self._duty_context = duty_context
        self._ownership = ownership
        self._expanded = expanded
        self._paces = Paces()
        self._failures = Failures()
        self._aged_on = -1
        self._stopping = False
        self._prompt = [each for each in duty_context.readers if each.is_prompt]
        self._woken = asyncio.Event()
        self._reports = False
        """Whether this process reads the journal for all."""
        for app in context.routing.credentials:  # there from the start, so that an alert sees the first one as a change
            context.telemetry.count(Metric.BULK_FAILED, 0, app=app)

    def tickers(self, roles: frozenset[Role]) -> list[Ticker]:
        """List the tickers of the duties of *roles*."""
        duties = [
            Duty(Role.REPORT, "report", REGISTRY_S, self._report),
            *([] if self._duty_context.record is None else [Duty(Role.RECORDER, "record", RECORD_S, self._record)]),
            Duty(Role.SWEEP, "sweep", SWEEP_S, self._sweep),
            Duty(Role.SWEEP, "erase", ERASE_S, self._erase),
            Duty(Role.SWEEP, "age", AGE_S, self._age),
            Duty(Role.EXPAND, "expand", EXPAND_S, self._expand),
            Duty(Role.EXPAND, "tidy", TIDY_S, self._tidy),
            *(
                Duty(Role.REPORT, f"read.{each.name}", REPORT_S, partial(self._read, each))
                for each in self._duty_context.readers
                if not each.is_prompt
            ),
            *self._duty_context.duties,
        ]
        tickers: list[Ticker] = [
            (name, every_s, partial(self._do, role, act)) for role, name, every_s, act in duties if role in roles
        ]
        if self._prompt and Role.REPORT in roles:
            tickers.append(("read.promptly", PROMPT_S, self._read_promptly))
        return tickers

    def written(self) -> bool:
        """Tell the prompt readers that something was written; return whether those of other processes must be told."""
        if self._prompt:
            self._woken.set()
        return bool(self._prompt) and not self._reports

    def stop(self) -> None:
        """Stop before the next page."""
        self._stopping = True

    async def _do(self, role: Role, act: Callable[[], Awaitable[Rest | None]]) -> Rest | None:
        is_shared = role is Role.RECORDER and self._duty_context.shares_recording
        if is_shared or await self._ownership.take_role(role):
            return await act()
        return ELSEWHERE

    async def _read_promptly(self) -> Rest | None:
        """Wait until something was written, or for a while, and tell the prompt readers what is new."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REPORT_S):
                await self._woken.wait()
        self._woken.clear()
        self._reports = await self._ownership.take_role(Role.REPORT)
        if not self._reports:
            return ELSEWHERE
        rest: Rest | None = UNTIL_WRITTEN
        for reader in self._prompt:
            try:
                await self._read(reader)
            except Unavailable:
                rest = None  # the store reports its outage itself: the next round tries again
            except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not keep back the others
                rest = None
                self._surprised(f"read.{reader.name}", type(surprise).__name__)
        return rest

    async def _report(self) -> Rest | None:
        """Tell the registry what was settled."""
        context = self._duty_context
        is_full = True
        while is_full:
            page = await report(context.journal, context.devices, context.deletes_dead)
            is_full = page.rows == REPORTED_PAGE
            if page.evicted:
                self._context.telemetry.event(Event.TOKENS_EVICTED, count=page.evicted)
                self._context.telemetry.count(Metric.EVICTED, page.evicted)
            for each in page.failed:
                self._surprised("report", each.error, app=each.app)
            for (app, status), n in Counter(page.finished).items():
                self._context.telemetry.count(Metric.FINISHED, n, app=app, status=status)
        return UNTIL_WRITTEN

    async def _read(self, reader: Reader) -> Rest | None:
        """Tell a reader of the journal what is new; where it fails, the others go on."""
        while not self._stopping and await tail(self._duty_context.journal, reader) == READ_PAGE:
            pass
        return UNTIL_WRITTEN

    async def _record(self) -> Rest | None:
        """Record what the log says, until there is no more."""
        while self._duty_context.record is not None and await self._duty_context.record():
            pass
        return None

    async def _expand(self) -> Rest | None:
        """Walk bulk jobs on, until there is no room or nobody left."""
        moved, running = True, 0
        while moved and not self._stopping:
            expanded = await expand(self._duty_context.bulk, self._paces, self._failures, self._context.clock.now())
            moved, running = expanded.moved, expanded.running
            for each in expanded.failed:
                job = format_id(NotificationId(each.id))
                if each.unstopped is not None:
                    self._surprised("expand", each.unstopped, app=each.app, job=job)
                    continue
                self._context.telemetry.event(Event.BULK_FAILED, app=each.app, job=job, error=each.error)
                self._context.telemetry.count(Metric.BULK_FAILED, app=each.app)
            if expanded.recipients:
                self._expanded(Lane.BULK)
        return None if running else UNTIL_WRITTEN

    async def _tidy(self) -> Rest | None:
        """Finish bulk jobs that are through, and stop the open part of those that were cancelled."""
        now = self._context.clock.now()
        left = await self._duty_context.bulk.tidy(now, TIDY_PAGE)
        for app, notification_id in left:
            try:
                await self._duty_context.work.amend([Withdraw(app, notification_id, "cancelled")], now)
            except Unavailable:
                continue  # its shard moves, or the store reports its outage: the next round tries again
            except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
                self._surprised("tidy", type(surprise).__name__, app=app, notification_id=format_id(notification_id))
        return None if left else UNTIL_WRITTEN

    async def _erase(self) -> Rest | None:
        """Carry on with all erasures that were ordered, one after the other."""
        after = None
        while page := await self._duty_context.erasures.standing(ERASURES_AT_ONCE, after):
            for erasure in page:
                if self._stopping:
                    return None
                await self._carry_on(erasure)
            after = page[-1].id
        return UNTIL_WRITTEN if after is None else None

    async def _carry_on(self, erasure: Erasure) -> None:
        """Carry an erasure one pass on; where it fails, the next round tries again, and those behind it do not wait."""
        duty_context, named = self._duty_context, {"app": erasure.app, "erasure": format_id(erasure.id)}
        try:
            done = await erase(
                duty_context.erasures,
                duty_context.devices,
                duty_context.work,
                erasure,
                self._context.clock.now(),
                duty_context.erases,
                deletes=duty_context.deletes_erased,
            )
        except Unavailable:
            return  # the store or the registry reports its outage itself
        except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
            self._context.telemetry.event(Event.ERASURE_FAILED, error=type(surprise).__name__, **named)
            return
        if done.finished:
            self._context.telemetry.event(Event.USER_ERASED, **named)

    async def _sweep(self) -> None:
        """Delete what is over."""
        duty_context, now = self._duty_context, self._context.clock.now()
        readers = [READER, *(reader.name for reader in duty_context.readers)]
        beside = {name: partial(drop, now) for name, drop in duty_context.drops.items()}
        stores = Stores(duty_context.journal, readers, duty_context.dedup, duty_context.retention, beside)
        swept = await sweep(stores, later(now, -duty_context.keep_days * DAY_MS))
        for part, error in swept.failed:
            self._surprised("sweep", error, part=part)
        went = {name: n for name, n in msgspec.structs.asdict(swept).items() if name != "failed"}
        self._context.telemetry.event(Event.SWEEP_DONE, **went)

    async def _age(self) -> None:
        """Let devices age, once a day; where it fails, the next round tries again."""
        now, ages = self._context.clock.now(), self._duty_context.ages
        if now // DAY_MS == self._aged_on or ages == DeviceAges():
            return
        for app in self._context.routing.credentials:
            aged = await age(self._duty_context.devices, app, ages, now)
            if aged != NOTHING:
                self._context.telemetry.event(Event.DEVICES_AGED, app=app, **msgspec.structs.asdict(aged))
        self._aged_on = now // DAY_MS

    def _surprised(self, stage: str, error: str, **member: str) -> None:
        """Report that one item of a duty was passed over."""
        self._context.telemetry.event(Event.STAGE_FAILED, stage=stage, error=error, **member)
