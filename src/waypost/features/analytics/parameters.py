"""The parameters of questions for counts, and how they are read."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

from litestar.openapi.spec.enums import OpenAPIFormat
from litestar.params import QueryParameter

from waypost.domain.buckets import Bucket
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.profile import zone_faults
from waypost.domain.submission import NO_CONTROLS, Moment
from waypost.domain.time import DAY_MS, Instant, from_datetime, later
from waypost.entrypoints.decoding import checked

DEFAULT_DAYS: Final = 7
LONGEST_DAYS: Final = {Bucket.HOUR: 31, Bucket.DAY: 732, None: 3_660}
"""The days of one question, by what it is told apart by."""

SinceGiven = Annotated[
    str | None,
    QueryParameter(
        format=OpenAPIFormat.DATE_TIME, description="Sent then or later; seven days ago if omitted.", required=False
    ),
]
UntilGiven = Annotated[
    str | None,
    QueryParameter(format=OpenAPIFormat.DATE_TIME, description="Sent before; now if omitted.", required=False),
]
EveryGiven = Annotated[
    Bucket | None, QueryParameter(description="Tell each hour or day of the zone apart.", required=False)
]
ZoneGiven = Annotated[
    str, QueryParameter(max_length=64, description="The time zone of hours and days, by its name in the IANA database.")
]
OfGiven = Annotated[
    Literal["notifications", "deliveries"],
    QueryParameter(description="What is counted: a notification once, or each of its deliveries."),
]
ByGiven = Annotated[
    Literal["type", "channel", "platform", "campaign", "variant", "template"] | None,
    QueryParameter(description="Tell these apart.", required=False),
]


def _only(what: str) -> object:
    return QueryParameter(max_length=128, pattern=NO_CONTROLS, description=f"Only of this {what}.", required=False)


TypeGiven = Annotated[str | None, _only("type")]
ChannelGiven = Annotated[str | None, _only("channel")]
PlatformGiven = Annotated[str | None, _only("platform")]
CampaignGiven = Annotated[str | None, _only("campaign: its name, or the id of a bulk job without one")]
VariantGiven = Annotated[str | None, _only("variant of the campaign")]
TemplateGiven = Annotated[str | None, _only("template and version")]
SegmentGiven = Annotated[
    str | None,
    QueryParameter(
        max_length=128,
        pattern=NO_CONTROLS,
        description="The segment that the user counts as one of while too little is known of the user.",
        required=False,
    ),
]
NameGiven = Annotated[str | None, _only("name")]


def zone_in(name: str) -> ZoneInfo:
    """Read a time zone; InvalidRequest where there is none of that name."""
    if zone_faults(name):
        raise InvalidRequest((Fault("zone", "no time zone of the IANA database, such as Europe/Zurich"),))
    return ZoneInfo(name)


def span_in(since: str | None, until: str | None, every: Bucket | None, now: Instant) -> tuple[Instant, Instant]:
    """Read a span of time; InvalidRequest where it is none, or too long for what is told apart."""
    last = now if until is None else from_datetime(checked(Moment, until, "until"))
    first = later(last, -DEFAULT_DAYS * DAY_MS) if since is None else from_datetime(checked(Moment, since, "since"))
    longest = LONGEST_DAYS[every]
    if not first < last <= later(first, longest * DAY_MS):
        raise InvalidRequest((Fault("since", f"must be before until, by at most {longest} days"),))
    return first, last
