"""Routes of counts: rates, funnels, events, and the best hour of a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from litestar import Response, get
from msgspec import Meta, Struct

from waypost.domain.best_hour import BasedOn
from waypost.domain.errors import ErrorCode, NotFound
from waypost.domain.ids import UserId
from waypost.domain.profile import zone_of
from waypost.domain.time import isoformat
from waypost.domain.tracked import NotificationEvent
from waypost.entrypoints.access import READS
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import PathIdentity, user_in
from waypost.entrypoints.rest.views import Timestamp
from waypost.features.analytics.figures import FUNNEL, Sums, grouped, rate
from waypost.features.analytics.parameters import (
    ByGiven,
    CampaignGiven,
    ChannelGiven,
    EveryGiven,
    NameGiven,
    OfGiven,
    PlatformGiven,
    SegmentGiven,
    SinceGiven,
    TemplateGiven,
    TypeGiven,
    UntilGiven,
    VariantGiven,
    ZoneGiven,
    span_in,
    zone_in,
)
from waypost.features.parts import Ground
from waypost.pipeline.best_hours import CountedHours
from waypost.ports.analytics import CountQuery, EventQuery

_E = NotificationEvent
MEMBERS: Final = 200
"""The users of a segment that are looked at: so many tell the hour of all."""
Rate = Annotated[float | None, Meta(description="From 0 to 1; null where nothing was sent.")]
Since = Annotated[Timestamp, Meta(description="The first moment that is looked at.")]
Until = Annotated[Timestamp, Meta(description="The moment before which it ends.")]
Start = Annotated[Timestamp | None, Meta(description="When the hour or day begins; null without `every`.")]
Label = Annotated[str | None, Meta(description="The value of what `by` tells apart; null without it.")]


class RateRow(Struct, frozen=True):
    """The counts of what was sent in one span of time, and their rates."""

    label: Label
    start: Start
    sent: Annotated[int, Meta(description="Taken by a provider, or put into the feed.")]
    delivered: Annotated[int, Meta(description="That came to a device, as it said.")]
    read: Annotated[int, Meta(description="Opened in the feed, or tapped.")]
    opened: Annotated[int, Meta(description="Tapped.")]
    action_taken: Annotated[int, Meta(description="Of which a button was pressed.")]
    delivery_rate: Annotated[Rate, Meta(description="Delivered ÷ sent.")]
    read_rate: Annotated[Rate, Meta(description="Read ÷ sent.")]
    open_rate: Annotated[Rate, Meta(description="Opened ÷ sent.")]
    conversion_rate: Annotated[Rate, Meta(description="Action taken ÷ sent.")]


class Rates(Struct, frozen=True):
    """The rates, in the order of time and label."""

    since: Since
    until: Until
    rows: Annotated[tuple[RateRow, ...], Meta(description="A row for each label and span of time.")]


class FunnelStep(Struct, frozen=True):
    """A step of a funnel."""

    event: Annotated[NotificationEvent, Meta(description="What happened.")]
    count: Annotated[int, Meta(description="How many came so far.")]
    of_sent: Annotated[Rate, Meta(description="The part of what was sent.")]
    of_before: Annotated[Rate, Meta(description="The part of the step before.")]


class Funnel(Struct, frozen=True):
    """The funnel of one campaign, or of one value of what `by` tells apart."""

    label: Label
    steps: Annotated[tuple[FunnelStep, ...], Meta(description="The steps, the widest first.")]


class Funnels(Struct, frozen=True):
    """The funnels, in the order of their labels."""

    since: Since
    until: Until
    funnels: Annotated[tuple[Funnel, ...], Meta(description="A funnel for each label.")]


class EventRow(Struct, frozen=True):
    """The number of events of one name."""

    name: Annotated[str, Meta(description="What happened.")]
    start: Start
    count: Annotated[int, Meta(description="How often.")]


class EventRows(Struct, frozen=True):
    """Events by their own time, in its order."""

    since: Since
    until: Until
    rows: Annotated[tuple[EventRow, ...], Meta(description="A row for each name and span of time.")]


class BestHourView(Struct, frozen=True):
    """The hour of the day in which a user reads most of what is sent; null where too little is known."""

    hour: Annotated[int | None, Meta(description="From 0 to 23, in the zone.")]
    zone: Annotated[str, Meta(description="The user's time zone; UTC where none is known.")]
    based_on: Annotated[BasedOn | None, Meta(description="Whose habits say so.")]
    rate: Annotated[Rate, Meta(description="The part of what was sent in that hour that was opened.")]


@get(
    "/v1/analytics/rates",
    tags=["Analytics"],
    summary="Tell what became of what was sent",
    operation_id="getRates",
    opt=speaks({200: Rates}, READS),
)
async def rates(  # noqa: PLR0913, PLR0917 - each is a parameter of the query
    request: Call,
    since: SinceGiven = None,
    until: UntilGiven = None,
    every: EveryGiven = None,
    zone: ZoneGiven = "UTC",
    of: OfGiven = "notifications",
    by: ByGiven = None,
    type: TypeGiven = None,
    channel: ChannelGiven = None,
    platform: PlatformGiven = None,
    campaign: CampaignGiven = None,
    variant: VariantGiven = None,
    template: TemplateGiven = None,
) -> Response[bytes]:
    """Count what was sent in a span of time, and how much of it was delivered, read, opened and acted on since."""
    first, last = span_in(since, until, every, api_of(request).clock.now())
    filters = _given(
        type=type, channel=channel, platform=platform, campaign=campaign, variant=variant, template=template
    )
    query = CountQuery(request.user.app, first, last, filters, by, every, zone_in(zone))
    counts = await _ground(request).store.analytics.counts(query)
    rows = tuple(
        RateRow(
            label,
            None if start is None else isoformat(start),
            *(sums[event] for event in _E),
            *(rate(sums[event], sums[_E.SENT]) for event in (_E.DELIVERED, _E.READ, _E.OPENED, _E.ACTION_TAKEN)),
        )
        for (label, start), sums in grouped(counts, of).items()
    )
    return answer(200, Rates(isoformat(first), isoformat(last), rows))


@get(
    "/v1/analytics/funnel",
    tags=["Analytics"],
    summary="Tell how far what was sent came",
    operation_id="getFunnel",
    opt=speaks({200: Funnels}, READS),
)
async def funnel(  # noqa: PLR0913, PLR0917 - as above
    request: Call,
    since: SinceGiven = None,
    until: UntilGiven = None,
    of: OfGiven = "notifications",
    by: ByGiven = "campaign",
    type: TypeGiven = None,
    channel: ChannelGiven = None,
    platform: PlatformGiven = None,
    campaign: CampaignGiven = None,
    variant: VariantGiven = None,
    template: TemplateGiven = None,
) -> Response[bytes]:
    """Count sent, delivered, opened and acted on, each as a part of the step before; a campaign's own by `campaign`."""
    first, last = span_in(since, until, None, api_of(request).clock.now())
    filters = _given(
        type=type, channel=channel, platform=platform, campaign=campaign, variant=variant, template=template
    )
    counts = await _ground(request).store.analytics.counts(CountQuery(request.user.app, first, last, filters, by))
    funnels = tuple(Funnel(label, _steps(sums)) for (label, _), sums in grouped(counts, of).items())
    return answer(200, Funnels(isoformat(first), isoformat(last), funnels))


@get(
    "/v1/analytics/events",
    tags=["Analytics"],
    summary="Tell how often events happened",
    operation_id="getEventCounts",
    opt=speaks({200: EventRows}, READS),
)
async def events(
    request: Call,
    since: SinceGiven = None,
    until: UntilGiven = None,
    every: EveryGiven = None,
    zone: ZoneGiven = "UTC",
    name: NameGiven = None,
) -> Response[bytes]:
    """Count events by the time when they happened: those of notifications, and the app's own."""
    first, last = span_in(since, until, every, api_of(request).clock.now())
    query = EventQuery(request.user.app, first, last, name, every, zone_in(zone))
    counts = await _ground(request).store.analytics.events(query)
    ordered = sorted(counts, key=lambda it: (it.start or 0, it.name))
    rows = tuple(EventRow(it.name, None if it.start is None else isoformat(it.start), it.count) for it in ordered)
    return answer(200, EventRows(isoformat(first), isoformat(last), rows))


@get(
    "/v1/users/{user_id:str}/best-hour",
    tags=["Analytics"],
    summary="Tell when to send to a user",
    operation_id="getBestHour",
    opt=speaks({200: BestHourView}, READS, codes=(ErrorCode.NOT_FOUND,)),
)
async def best_hour(request: Call, user_id: PathIdentity, segment: SegmentGiven = None) -> Response[bytes]:
    """Name the hour of the highest read rate, in the user's zone: the user's own, else a segment's, else the app's."""
    app, user, store = request.user.app, user_in(request.user, user_id), _ground(request).store
    profile = (await store.profiles.of(app, [user])).get(user)
    zone = zone_of(None if profile is None else profile.time_zone, _ground(request).config.apps[app].time_zone)
    like = () if segment is None else await _members(request, segment)
    found = (await CountedHours(store.analytics, api_of(request).clock).of(app, {user: zone}, like)).get(user)
    if found is None:
        return answer(200, BestHourView(None, zone.key, None, None))
    return answer(200, BestHourView(found.hour, zone.key, found.based_on, round(found.rate, 4)))


async def _members(request: Call, segment: str) -> Sequence[UserId]:
    """Return the first users of a segment, who stand for all; NotFound where there is none of that name."""
    segments, app = _ground(request).store.segments, request.user.app
    found = await segments.find(app, segment)
    if found is None:
        raise NotFound("no such segment")
    return await segments.first(app, found.filter, api_of(request).clock.now(), MEMBERS)


def _steps(sums: Sums) -> tuple[FunnelStep, ...]:
    before = (FUNNEL[0], *FUNNEL)
    return tuple(
        FunnelStep(event, sums[event], rate(sums[event], sums[_E.SENT]), rate(sums[event], sums[last]))
        for last, event in zip(before, FUNNEL, strict=False)
    )


def _given(**filters: str | None) -> dict[str, str]:
    return {name: value for name, value in filters.items() if value is not None}


def _ground(request: Call) -> Ground:
    ground: Ground = ground_of(request, "analytics")
    return ground


ROUTES = [rates, funnel, events, best_hour]
