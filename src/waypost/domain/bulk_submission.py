"""What a caller asks of a bulk job, and whether it makes sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from waypost.domain.best_time import LATEST_MS, SendAt, is_best
from waypost.domain.bulk import BulkJob, JobId, Recipient, RegistryFilter
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import SubmittedChannels
from waypost.domain.content import ApnsPushType, Content, Kind, TemplateUse, Urgency
from waypost.domain.device import Platform
from waypost.domain.drafting import ContentCheck, draft
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId
from waypost.domain.local_time import WESTERNMOST, instant_at, parse_local
from waypost.domain.notification import Notification
from waypost.domain.personal import NAME, names_in, personalised, placeholder_faults
from waypost.domain.segment import Filter, SegmentName, TopicName
from waypost.domain.submission import (
    Badge,
    CampaignName,
    Defaults,
    Holdout,
    Identity,
    Line,
    Link,
    Locale,
    Moment,
    Seconds,
    Submission,
    SubmittedAction,
    SubmittedTemplate,
    SubmittedVariants,
    Tags,
    TypeName,
    Word,
)
from waypost.domain.template import Variable, Version, use_of
from waypost.domain.text import NO_NUL, Text
from waypost.domain.time import Instant, from_datetime, later

RATE_LIMIT = 1_000_000
VALUE_LIMIT = 1_024
LIST_LIMIT = 10_000
"""Recipients in the request itself: it is read in one go, and nothing else is done meanwhile."""
_NOBODY = "nobody"

Value = str | int | float | bool
Fields = dict[str, Value]
"""A recipient: ``user_id``, and a variable under each other name."""


class BulkMessage(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A notification without a recipient; ``{{name}}`` in its texts and data is replaced for each recipient."""

    kind: Kind = Kind.VISIBLE
    urgency: Urgency = Urgency.NORMAL
    title: Line | None = None
    subtitle: Line | None = None
    body: str | None = None
    data: dict[str, Any] = {}
    image: Link | None = None
    icon: Link | None = None
    link: Link | None = None
    actions: Annotated[tuple[SubmittedAction, ...], Meta(max_length=8)] = ()
    sound: Word | None = None
    badge: Badge | None = None
    category: Word | None = None
    thread: Word | None = None
    android_channel: Word | None = None
    collapse_key: Word | None = None
    ttl: Annotated[
        Seconds | None,
        Meta(description="Seconds, from now on or from `send_at`, for which sending is worthwhile."),
    ] = None
    send_at: Annotated[
        SendAt | None,
        Meta(description="The earliest time of sending on each recipient's own clock, as in a single one."),
    ] = None
    overrides: Annotated[
        dict[Channel, dict[str, Any]],
        Meta(extra_json_schema={"propertyNames": {"$ref": "#/components/schemas/Channel"}}),
    ] = {}
    push_type: ApnsPushType | None = None
    channels: Annotated[SubmittedChannels, Meta(description="The channels to send by, as in a single one.")] = ()
    retry_policy: Text | None = None
    tags: Tags = ()
    type: Annotated[
        TypeName | None, Meta(description="Your own name for the type of message.", examples=["promotion"])
    ] = None
    campaign: Annotated[
        CampaignName | None, Meta(description="Your own name for what its results are counted under.")
    ] = None
    variants: SubmittedVariants = ()
    holdout: Holdout = 0
    template: Annotated[
        SubmittedTemplate | None,
        Meta(description="The template that says it; what it declares as variables, each recipient may have."),
    ] = None
    variables: Annotated[dict[str, Any], Meta(description="The template's variables that are the same for all.")] = {}
    locale: Locale | None = None


class BulkRegistry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A filter of registered devices: every given field must match; an empty filter selects all devices of the app."""

    platforms: Annotated[
        tuple[
            Annotated[
                Platform,
                Meta(max_length=32, pattern=NO_NUL, extra_json_schema={"$ref": "#/components/schemas/Platform"}),
            ],
            ...,
        ],
        Meta(max_length=50),
    ] = ()
    app_versions: Annotated[tuple[Text, ...], Meta(max_length=50)] = ()
    locales: Annotated[
        tuple[Annotated[str, Meta(max_length=35, pattern=r"^[A-Za-z0-9_-]+(?!\n)$")], ...],
        Meta(max_length=50, description="A language alone includes its regions: `de` matches `de-CH`."),
    ] = ()
    seen_after: Annotated[
        Moment | None, Meta(description="Registered or refreshed at or after this time (RFC 3339).")
    ] = None


class BulkTarget(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The users whom a filter chooses while the job reaches them: exactly one of these fields."""

    segment: Annotated[SegmentName | None, Meta(description="A segment, with its filter as it is now.")] = None
    topic: Annotated[TopicName | None, Meta(description="Who hears this topic of yours.")] = None
    filter: Filter | None = None


class BulkSubmission(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One notification to many recipients: a list here, a list that is uploaded, the registry or users by a filter."""

    notification: BulkMessage
    recipients: Annotated[
        Annotated[tuple[Identity | Fields, ...], Meta(min_length=1, max_length=LIST_LIMIT)] | None,
        Meta(description="User ids, or objects with a `user_id` and variables under other names."),
    ] = None
    upload: Annotated[
        bool, Meta(description="True if the list is uploaded afterwards, by PUT to the job's `recipients`.")
    ] = False
    registry: BulkRegistry | None = None
    to: Annotated[BulkTarget | None, Meta(description="A topic, a segment, or a filter of users.")] = None
    variables: Annotated[dict[str, Value], Meta(description="Defaults for recipients without their own value.")] = {}
    rate: Annotated[
        Annotated[int, Meta(ge=1, le=RATE_LIMIT)] | None, Meta(description="The most recipients per second.")
    ] = None


def draft_job(  # noqa: PLR0913 - all that decides what a job does
    asked: BulkSubmission,
    new_id: NotificationId,
    app: AppId,
    caller: CallerId,
    defaults: Defaults,
    now: Instant,
    checks: Sequence[ContentCheck] = (),
    chosen: Filter | None = None,
    *,
    zone: str | None = None,
    version: Version | None = None,
) -> BulkJob:
    """Build the job that a submission asks for; InvalidRequest carries every fault found.

    *chosen* is what its ``to`` stands for; *zone* is that of recipients who have none of their own; *version* is that
    of the template that it names.
    """
    message = {name: getattr(asked.notification, name) for name in asked.notification.__struct_fields__}
    try:
        use = None if asked.notification.template is None else _use_of(asked, version)
        said = Submission(user_id=_NOBODY, **message)
        made = draft(said, new_id, app, caller, defaults, now, checks, template=use)
    except InvalidRequest as invalid:
        inside = tuple(Fault(f"notification.{fault.path}".rstrip("."), fault.why) for fault in invalid.faults)
        raise InvalidRequest(inside, invalid.code) from None
    told = made.notification
    found = list(_faults(asked, made.content))
    if found:
        raise InvalidRequest(tuple(found))
    own = {name: as_text(value) for name, value in asked.variables.items()}
    is_list = asked.registry is None and asked.to is None
    declared = {} if version is None else version.content.variables
    names = names_in(made.content) | declared.keys()
    content = made.content if is_list else personalised(made.content, own)
    return BulkJob(
        id=JobId(new_id),
        app=app,
        caller=caller,
        content=content,
        created_at=now,
        expires_at=told.expires_at if message["send_at"] is None else _last(message["send_at"], told, now),
        ttl_ms=told.ttl_ms,
        registry=None if asked.registry is None else _filter(asked.registry),
        segment=chosen,
        names=tuple(sorted(names)) if is_list else (),
        optional=tuple(sorted(_given(asked, declared) & names)) if is_list else (),
        defaults=own,
        rate=asked.rate,
        kind=told.kind,
        urgency=told.urgency,
        retry_policy=told.retry_policy,
        send_at=message["send_at"],
        zone=zone,
    )


def _last(send_at: str, made: Notification, now: Instant) -> Instant:
    """Return when nobody is sent to any more: where the local time comes last, and the TTL after that."""
    if is_best(send_at):
        return later(now, LATEST_MS + made.ttl_ms)
    return later(Instant(max(now, instant_at(parse_local(send_at), WESTERNMOST))), made.ttl_ms)


def _use_of(asked: BulkSubmission, version: Version | None) -> TemplateUse:
    """Return what the job says by *version*; what it requires may still come with each recipient of a list."""
    given = asked.notification.variables
    is_whole = asked.registry is not None or asked.to is not None
    if is_whole:
        own = {name: as_text(value) for name, value in asked.variables.items()}
        given = own | given
    said = Submission(template=asked.notification.template, variables=given, locale=asked.notification.locale)
    return use_of(said, version, is_whole=is_whole)


def _given(asked: BulkSubmission, declared: Mapping[str, Variable]) -> set[str]:
    """List the declared variables that a recipient may lack."""
    return {name for name, each in declared.items() if not each.required or name in asked.notification.variables}


def _faults(asked: BulkSubmission, content: Content) -> Iterator[Fault]:
    given = (asked.recipients is not None, asked.upload, asked.registry is not None, asked.to is not None)
    if sum(given) != 1:
        yield Fault("", "give recipients, or a registry filter, or to, or upload: true")
    for fault in placeholder_faults(content):
        yield Fault(f"notification.{fault.path}", fault.why)
    yield from (Fault(f"variables.{name}", why) for name, why in _variable_faults(asked.variables))
    if asked.registry is not None or asked.to is not None:
        for name in sorted(names_in(content) - asked.variables.keys()):
            yield Fault(f"variables.{name}", "only a list has variables of its own: give it here")


def _filter(registry: BulkRegistry) -> RegistryFilter:
    seen_after = None if registry.seen_after is None else from_datetime(registry.seen_after)
    return RegistryFilter(registry.platforms, registry.app_versions, registry.locales, seen_after)


def recipient_of(given: str | Mapping[str, Any], job: BulkJob, at: str) -> Recipient:
    """Check one recipient as it was given and drop fields the job does not use; InvalidRequest names faults by *at*."""
    fields = {"user_id": given} if isinstance(given, str) else given
    user_id = fields.get("user_id")
    try:
        msgspec.convert(user_id, Identity)
    except msgspec.ValidationError:
        why = "required" if user_id is None else "must be 1 to 128 characters without control characters"
        raise InvalidRequest((Fault(f"{at}.user_id", why),)) from None
    wanted = {name: fields[name] for name in job.names if fields.get(name) not in (None, "")}
    faults = [Fault(f"{at}.{name}", why) for name, why in _variable_faults(wanted)]
    known = wanted.keys() | job.defaults.keys() | set(job.optional)
    missing = [name for name in job.names if name not in known]
    faults += [Fault(f"{at}.{name}", "missing, and the job has no default for it") for name in missing]
    if faults:
        raise InvalidRequest(tuple(faults))
    return Recipient(UserId(str(user_id)), {name: as_text(value) for name, value in wanted.items()})


def _variable_faults(variables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in variables.items():
        if NAME.fullmatch(name) is None:
            yield name, "a variable's name is letters, digits and _, and begins with no digit"
        elif not isinstance(value, str | int | float):
            yield name, "must be a text, a number or a truth value"
        elif len(as_text(value)) > VALUE_LIMIT:
            yield name, f"longer than {VALUE_LIMIT} characters"


def as_text(value: Value) -> str:
    """Format a variable's value as it is filled in."""
    return str(value).lower() if isinstance(value, bool) else str(value)
