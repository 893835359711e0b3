"""Intake: from a caller's request to one durable write."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, assert_never, cast

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.amendment import (
    Collapse,
    NotOpen,
    Supersede,
    TooLate,
    Withdraw,
    Withdrawal,
    Withdrawn,
)
from waypost.domain.backlog import Backlog, Full
from waypost.domain.best_time import HabitReader, UserClock, is_best
from waypost.domain.claims import keys_of
from waypost.domain.device import Device, Registration
from waypost.domain.drafting import ContentCheck, Draft, draft
from waypost.domain.errors import ErrorCode, InvalidRequest, NotFound, Unavailable, WaypostError
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId, format_id
from waypost.domain.local_time import UTC_NAME, ZoneReader
from waypost.domain.notification import Lane, lane_of
from waypost.domain.plain import Checks, checks_of, draft_plain
from waypost.domain.scope import Scope
from waypost.domain.submission import Defaults, Submission
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.clock import Clock, Ids
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Direct, Named
from waypost.ports.pressure import CALM, Pressure
from waypost.ports.templates import Said, TemplateChoice
from waypost.ports.work import Acceptance, Accepted, NewNotification, NotReplayable, Replay, Unwritten, Work
from waypost.telemetry import Event, Metric, Telemetry
from waypost.telemetry.tracing import Trace, Tracing, accepting

_SHED_FROM: Final = 0.5
"""The pressure from which submissions are refused that are not critical; the critical lane is refused from 1 on."""
_RETRY_AFTER_S: Final = (1, 4)
"""The range of seconds after which shed callers come again, at different times, or they would come at once."""


Clocks = Mapping[UserId, UserClock]


class Caller(Struct, frozen=True):
    """The caller and app that a verified key or token stands for."""

    app: AppId
    name: CallerId
    scopes: frozenset[Scope]
    user: UserId | None = None
    """The end user whose own token calls; None where a backend does."""
    trace: Trace | None = None
    """The place in the caller's trace that its request comes from, where requests are traced."""


class Intake(Struct, frozen=True):
    """The intake of notifications, the same for every entry point."""

    work: Work
    dedup: Dedup
    clock: Clock
    ids: Ids
    telemetry: Telemetry
    defaults: Mapping[AppId, Defaults]
    direct: Direct
    templates: TemplateChoice
    backlog: Callable[[], Backlog]
    """Returns what waits already."""
    pressure: Callable[[], Pressure] = lambda: CALM
    """Returns how long is waited to be accepted."""
    refused: Callable[[AppId, Lane, int], None] = lambda app, lane, n: None
    """Counts requests that were read and refused."""
    announce: Callable[[Lane], None] = lambda lane: None
    """Called with each lane that work was accepted for."""
    checks: Mapping[AppId, Sequence[ContentCheck]] = {}
    """Of each app, what the channels that it has a credential for refuse."""
    zones: ZoneReader | None = None
    """Finds the zones in which local times of users are meant; None where all are UTC."""
    habits: HabitReader | None = None
    """Reads when users read, for those who are to be told at their best time; None where nobody counts it."""
    tracing: Tracing | None = None
    """Records spans; None where nothing is traced."""
    sorted_checks: dict[AppId, Checks] = {}
    """The checks of each app by what they look at, once they were sorted."""

    async def submit(
        self, caller: Caller, submissions: Sequence[Submission], places: Sequence[Trace | None] = ()
    ) -> list[Acceptance | InvalidRequest]:
        """Accept each submission, or say what is wrong with it; one answer each, in order, durable when returned.

        *places* are where in traces they come from, if each has its own, and not the caller's.

        Unavailable while the backlog is full or the store cannot take it: nothing is known to be written then. Where
        some is, the others are ``Unwritten``.
        """
        try:
            if self.tracing is None:
                return await self._submit(caller, submissions)
            places = places or [caller.trace] * len(submissions)
            with accepting(self.tracing, caller.app, places) as traces:
                return await self._submit(caller, submissions, traces)
        except WaypostError:
            for lane, n in Counter(lane_of(each.kind, each.urgency) for each in submissions).items():
                self.refused(caller.app, lane, n)
            raise

    async def _submit(
        self, caller: Caller, submissions: Sequence[Submission], traces: Sequence[Trace | None] = ()
    ) -> list[Acceptance | InvalidRequest]:
        lanes = {lane_of(*each) for each in {(one.kind, one.urgency) for one in submissions}}
        self.shed(caller.app, _shed_from(lanes))
        self._refuse_if_full(caller.app, lanes)
        drafts = await self._drafts(caller, submissions)
        if traces:
            drafts = [*map(_traced, drafts, traces)]
        arrivals = [NewNotification(made.notification, made.claims) for made in drafts if isinstance(made, Draft)]
        answers = iter(await self.work.accept(arrivals) if arrivals else ())
        results = [next(answers) if isinstance(made, Draft) else made for made in drafts]
        self._tell(caller.app, submissions, drafts, results)
        await self._supersede(drafts, results)
        return results

    def shed(self, app: AppId, most: float = 1.0) -> None:
        """Raise Unavailable where the pressure is at *most* or more; entry points ask this before decoding a body."""
        pressure = self.pressure()
        if pressure.share >= most:
            self.telemetry.count(Metric.SHED, app=app, cause=pressure.cause)
            after_s = random.randint(*_RETRY_AFTER_S)  # noqa: S311 - spreads attempts
            raise Unavailable("more is submitted than can be stored", ErrorCode.STORAGE_BUSY, after_s)

    async def replay(
        self, caller: Caller, ids: Sequence[NotificationId], ttl_s: int | None = None, *, taken: bool = False
    ) -> list[Acceptance]:
        """Start a new round for what failed of each notification; its new time to live is the app's or *ttl_s*.

        With *taken* also for what was sent.
        """
        now = self.clock.now()
        expires_at = later(now, (self.defaults[caller.app].ttl_s if ttl_s is None else ttl_s) * SECOND_MS)
        answers = await self.work.accept([Replay(caller.app, each, now, expires_at, taken) for each in ids])
        for lane in Lane:
            self.announce(lane)
        return answers

    async def forget(self, caller: Caller, submission: Submission) -> int:
        """End the dedup windows that *submission* would meet, so that it is new again; return how many were open."""
        (new_id,) = self.ids.next(1)
        clocks = await self.clocks(caller.app, [submission])
        (said,) = await self.templates.chosen(caller.app, [submission])
        made = self._draft(caller, submission, new_id, self.clock.now(), None, said, clocks)
        if isinstance(made, InvalidRequest):
            raise made
        return await self.dedup.forget(keys_of(submission, made.notification))

    async def cancel(self, caller: Caller, notification_id: NotificationId) -> Withdrawal:
        """Withdraw what has not been handed over of one notification."""
        order = Withdraw(caller.app, notification_id, "cancelled")
        (answer,) = await self.work.amend([order], self.clock.now())
        assert isinstance(answer, Withdrawn | TooLate | NotOpen), "a withdrawal is answered as one"
        return answer

    async def _supersede(
        self, drafts: Sequence[Draft | InvalidRequest], results: Sequence[Acceptance | InvalidRequest]
    ) -> None:
        """Take back what is unsent of older notifications whose collapse key came again; what is scheduled stays.

        Where the store cannot say what is unsent, both are sent, and the newer one replaces the older on the device.
        """
        newest: dict[Collapse, Supersede] = {}
        for made, result in zip(drafts, results, strict=True):
            key = made.content.collapse_key if isinstance(made, Draft) else None
            if key is None or not isinstance(made, Draft):
                continue
            new = made.notification
            if isinstance(result, Accepted) and result.new and new.scheduled_at is None:
                of = Collapse(new.user_id, key)
                newest[of] = Supersede(new.app, of, new.id)
        if newest:
            with suppress(Unavailable):
                await self.work.amend([*newest.values()], self.clock.now())

    def has_room(self, app: AppId, lane: Lane) -> bool:
        """Tell whether a submission to *lane* would be looked at now, and not refused by how much waits already."""
        return self.pressure().share < _shed_from([lane]) and self.backlog().full(lane, app) is None

    def _refuse_if_full(self, app: AppId, lanes: Collection[Lane]) -> None:
        backlog = self.backlog()
        for lane in lanes:
            match backlog.full(lane, app):
                case None:
                    continue
                case Full.LANE:
                    why = f"the {lane} backlog is full"
                case Full.APP:
                    why = f"this app's part of the {lane} backlog is full"
                case never:
                    assert_never(never)
            raise Unavailable(why, ErrorCode.BACKLOG_FULL, retry_after_s=5)

    async def clocks(self, app: AppId, submissions: Sequence[Submission]) -> Clocks:
        """Find the clock of each user who is to be told at a time of their own; most submissions have none."""
        timed = [each for each in submissions if each.send_at is not None and each.user_id is not None]
        if not timed or self.zones is None:
            return {}
        zones = await self.zones(app, [UserId(each.user_id or "") for each in timed])
        best = {UserId(each.user_id or ""): None for each in timed if is_best(each.send_at or "")}
        habits = await self.habits(app, list(best)) if best and self.habits is not None else {}
        return {user: UserClock(zone, habits.get(user, ())) for user, zone in zones.items()}

    async def _drafts(self, caller: Caller, submissions: Sequence[Submission]) -> list[Draft | InvalidRequest]:
        """Draft each of *submissions*, or say what is wrong with it: the plain ones together, the others one by one."""
        ids = self.ids.next(len(submissions))
        checks = self.sorted_checks.get(caller.app)
        if checks is None:
            checks = self.sorted_checks[caller.app] = checks_of(self.checks.get(caller.app, ()))
        made = draft_plain(
            submissions, ids, caller.app, caller.name, self.defaults[caller.app], self.clock.now(), checks
        )
        others = [n for n, each in enumerate(made) if each is None]
        drafts: list[Draft | InvalidRequest] = cast("list[Draft | InvalidRequest]", made)
        if others:
            found = await self._draft_others(caller, [submissions[n] for n in others], [ids[n] for n in others])
            for n, each in zip(others, found, strict=True):
                drafts[n] = each
        return drafts

    async def _draft_others(
        self, caller: Caller, submissions: Sequence[Submission], ids: Sequence[NotificationId]
    ) -> list[Draft | InvalidRequest]:
        """Draft what is not plain, and keep the devices that are named by their tokens."""
        named = await self.direct.named(caller.app, submissions, self.clock.now())
        clocks = await self.clocks(caller.app, submissions)
        said = await self.templates.chosen(caller.app, submissions)

        def drafted(devices: Sequence[Named]) -> list[Draft | InvalidRequest]:
            now = self.clock.now()
            each = zip(submissions, ids, devices, said, strict=True)
            return [
                self._draft(caller, submission, new_id, now, device, template, clocks)
                for submission, new_id, device, template in each
            ]

        drafts = drafted(named)
        meant = [each if isinstance(made, Draft) else None for each, made in zip(named, drafts, strict=True)]
        kept = await self.direct.keep(meant, self.clock.now())
        if any(map(_is_somebodys, meant, kept)):
            drafts = drafted([new or was for new, was in zip(kept, named, strict=True)])
        return drafts

    def _draft(
        self,
        caller: Caller,
        submission: Submission,
        notification_id: NotificationId,
        now: Instant,
        device: Named,
        template: Said,
        clocks: Clocks,
    ) -> Draft | InvalidRequest:
        if isinstance(device, InvalidRequest):
            return device
        if isinstance(template, InvalidRequest):
            return template
        checks, defaults = self.checks.get(caller.app, ()), self.defaults[caller.app]
        clock = clocks.get(UserId(submission.user_id)) if clocks and submission.user_id is not None else None
        try:
            return draft(
                submission,
                notification_id,
                caller.app,
                caller.name,
                defaults,
                now,
                checks,
                device,
                template=template,
                zone=UTC_NAME if clock is None else clock.zone.name,
                habits=() if clock is None else clock.habits,
            )
        except InvalidRequest as invalid:
            return invalid

    def _tell(
        self,
        app: AppId,
        submissions: Sequence[Submission],
        drafts: Sequence[Draft | InvalidRequest],
        results: Sequence[Acceptance | InvalidRequest],
    ) -> None:
        """Count what became of *submissions*, and wake those who deliver what was accepted."""
        taken = [
            made.notification.lane
            for made, result in zip(drafts, results, strict=True)
            if isinstance(result, Accepted) and isinstance(made, Draft)
        ]
        lanes: dict[Lane, int] = {}
        for lane in taken:
            lanes[lane] = lanes.get(lane, 0) + 1
        for lane, n in lanes.items():
            self.announce(lane)
            self.telemetry.count(Metric.ACCEPTED, n, app=app, lane=lane)
        if len(taken) < len(results):
            self._tell_others(app, submissions, results)
        if self.telemetry.wants(Event.NOTIFICATION_ACCEPTED):
            for made, result in zip(drafts, results, strict=True):
                if isinstance(result, Accepted) and isinstance(made, Draft) and result.new:
                    named = {"notification_id": format_id(result.id), "app": app}
                    self.telemetry.event(Event.NOTIFICATION_ACCEPTED, **named, lane=made.notification.lane)

    def _tell_others(
        self, app: AppId, submissions: Sequence[Submission], results: Sequence[Acceptance | InvalidRequest]
    ) -> None:
        """Count what was not accepted: repeats, and what was refused."""
        repeated = 0
        refused: Counter[Lane] = Counter()
        for submission, result in zip(submissions, results, strict=True):
            if isinstance(result, InvalidRequest | Unwritten):
                refused[lane_of(submission.kind, submission.urgency)] += 1
                if isinstance(result, InvalidRequest):
                    self.telemetry.count(Metric.REFUSED, app=app, code=result.code)
            elif not isinstance(result, Accepted):
                repeated += 1
        if repeated:
            self.telemetry.count(Metric.DEDUPLICATED, repeated, app=app)
        for lane, n in refused.items():
            self.refused(app, lane, n)


def _shed_from(lanes: Collection[Lane]) -> float:
    """Return the pressure from which submissions of *lanes* are refused."""
    return 1.0 if Lane.CRITICAL in lanes else _SHED_FROM


def _traced(made: Draft | InvalidRequest, trace: Trace | None) -> Draft | InvalidRequest:
    """Keep with a notification where in a trace it was accepted, for all that follows, wherever that is done."""
    if trace is None or isinstance(made, InvalidRequest):
        return made
    notification = made.notification
    return replace(made, notification=replace(notification, content=replace(notification.content, trace=trace)))


def _is_somebodys(meant: Named, kept: Named) -> bool:
    """Tell whether an app registered a token before it could be kept as nobody's."""
    return isinstance(meant, Registration) and isinstance(kept, Device) and kept.user_id != meant.user_id


def require_replayable(answer: Acceptance) -> Acceptance:
    """Return the answer to a single replay, or raise the error that says why there was nothing to replay."""
    if isinstance(answer, NotReplayable):
        if not answer.known:
            raise NotFound("no such notification")
        raise WaypostError("it is still open, or nothing of it failed", ErrorCode.NOT_REPLAYABLE)
    return answer
