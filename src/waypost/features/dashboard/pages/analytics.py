"""Analytics: how much of what was sent was delivered, read, opened and acted on, over time and by what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
from litestar import Response
from msgspec import Struct

from waypost.domain.buckets import Bucket
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, from_datetime, isoformat, later
from waypost.features.dashboard.desk import Desk
from waypost.features.dashboard.handling import shows
from waypost.features.dashboard.site import Page

_FUNNELS: Final = 20
"""The funnels that are shown: the widest."""
_COUNTS: Final = ("sent", "delivered", "read", "opened", "action_taken")
_PARTS: Final = {
    "delivery_rate": "delivered",
    "read_rate": "read",
    "open_rate": "opened",
    "conversion_rate": "action_taken",
}
_RATES: Final = (
    ("delivery_rate", "delivered", "--good", ()),
    ("read_rate", "read", "--accent", ()),
    ("open_rate", "opened", "--warning", (8, 4)),
    ("conversion_rate", "acted on", "--bad", (2, 4)),
)
"""The rates: the API's name, the words, the colour of the line and its dashes."""
_SUMS: Final = (("sent", "sent", "--accent", ()), ("delivered", "delivered", "--good", (6, 4)))
BY: Final = ("campaign", "type", "channel", "platform", "variant", "template")
"""The labels that funnels are told apart by."""
FILTERS: Final = ("type", "channel", "platform", "campaign", "variant", "template")

Row = dict[str, Any]


class Span(Struct, frozen=True):
    """A span of time that may be chosen, and what it is told apart by."""

    title: str
    ms: int
    every: Bucket


SPANS: Final = {
    "day": Span("the last 24 hours, by hour", DAY_MS, Bucket.HOUR),
    "week": Span("the last 7 days, by hour", 7 * DAY_MS, Bucket.HOUR),
    "month": Span("the last 30 days, by day", 30 * DAY_MS, Bucket.DAY),
    "quarter": Span("the last 90 days, by day", 90 * DAY_MS, Bucket.DAY),
    "year": Span("the last 365 days, by day", 365 * DAY_MS, Bucket.DAY),
}


@shows("/analytics")
async def analytics(desk: Desk) -> Response[bytes]:
    """Show rates and counts of a span of time, by hour or day, by platform, and funnels."""
    settings = desk.ground.config.features.get("analytics")
    if not getattr(settings, "enabled", False):
        return desk.show("analytics_off.html")
    asked_for = desk.given("span") or ""
    chosen = asked_for if asked_for in SPANS else "week"
    span, by = SPANS[chosen], desk.given("by") or "campaign"
    zone = desk.ground.config.apps[desk.app].time_zone or "UTC"
    since = isoformat(later(desk.api.clock.now(), -span.ms))
    filters = {name: desk.given(name) for name in FILTERS}
    asked = {"since": since, "of": desk.given("of"), **filters}
    spread, platforms, funnels = await asyncio.gather(
        desk.ask("GET", "/v1/analytics/rates", query={**asked, "every": span.every.value, "zone": zone}),
        desk.ask("GET", "/v1/analytics/rates", query={**asked, "by": "platform"}),
        desk.ask("GET", "/v1/analytics/funnel", query={**asked, "by": by}),
    )
    rows = filled(spread["rows"], span.every, ZoneInfo(zone))
    return desk.show(
        "analytics.html",
        spans=SPANS,
        chosen=chosen,
        of=desk.given("of") or "notifications",
        zone=zone,
        filters=filters,
        is_filtered=any(filters.values()),
        total=_total(spread["rows"]),
        rows=[{**row, "from": _told(row, span.every, zone)} for row in reversed(rows) if row["sent"]],
        platforms=platforms["rows"],
        by=by,
        labels=BY,
        funnels=_widest(funnels["funnels"]),
        more_funnels=max(0, len(funnels["funnels"]) - _FUNNELS),
        rates_json=_chart(rows, _RATES, zone, "percent"),
        sums_json=_chart(rows, _SUMS, zone, "count"),
    )


def _total(rows: Sequence[Row]) -> Row | None:
    """Add up the hours or days, with the rates of all; None where nothing was sent."""
    sums = {name: sum(row[name] for row in rows) for name in _COUNTS}
    sent = sums["sent"]
    return {**sums, **{name: sums[of] / sent for name, of in _PARTS.items()}} if sent else None


def filled(rows: Sequence[Row], every: Bucket, zone: ZoneInfo) -> list[Row]:
    """Put the hours or days in which nothing was sent between *rows*: they have counts of 0, and no rates."""
    found: list[Row] = []
    for row in rows:
        at = from_datetime(datetime.fromisoformat(row["start"]))
        while found and (following := _after(found[-1]["at"], every, zone)) < at:
            found.append({"at": following, **dict.fromkeys(_COUNTS, 0), **{name: None for name, *_ in _RATES}})
        found.append({**row, "at": at})
    return found


def _after(start: Instant, every: Bucket, zone: ZoneInfo) -> Instant:
    """Return when the hour or day ends that begins at *start*; days are as long as the zone makes them."""
    if every is Bucket.HOUR:
        return later(start, HOUR_MS)
    day = datetime.fromtimestamp(start / 1_000, zone).date() + timedelta(days=1)
    return from_datetime(datetime(day.year, day.month, day.day, tzinfo=zone))


def _told(row: Row, every: Bucket, zone: str) -> str:
    """Write when the hour or day of *row* begins there."""
    at = datetime.fromtimestamp(row["at"] / 1_000, ZoneInfo(zone))
    return f"{at:%Y-%m-%d}" if every is Bucket.DAY else f"{at:%Y-%m-%d %H:%M}"


def _chart(rows: Sequence[Row], lines: Sequence[tuple[str, str, str, Sequence[int]]], zone: str, unit: str) -> str:
    """Write what ``charts.js`` draws, as JSON that may stand in a page."""
    drawn = [
        {"label": label, "colour": colour, "dash": dash, "values": [row[name] for row in rows]}
        for name, label, colour, dash in lines
    ]
    said = {"at": [row["at"] // 1_000 for row in rows], "lines": drawn, "unit": unit, "zone": zone}
    return msgspec.json.encode(said).decode().replace("<", "\\u003c")


def _widest(funnels: Sequence[Row]) -> list[Row]:
    return sorted(funnels, key=lambda each: -each["steps"][0]["count"])[:_FUNNELS]


PAGE = Page("analytics", "Analytics", [analytics])
