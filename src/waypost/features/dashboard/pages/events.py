"""Events: look for notifications, and read the whole story of one."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, Final

from litestar import Response
from msgspec import Struct

from waypost.domain.device import Device
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import NotificationId, UserId, created_at, first_id_at, format_id, parse_id
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant, from_datetime
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.explain_routes import RulingView, ruling_view
from waypost.features.dashboard.desk import Asking, Desk, redirect
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.looking import Looked, look
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.ports.audit import Act
from waypost.ports.views import HistoryQuery, NotificationRecord

_USERS: Final = 20
"""How many users with the same address are listed."""
_ID_CHARS: Final = 36
_RETRIED: Final = frozenset({"failed", "partial", "expired", "unknown"})
"""The statuses of which something can be tried again."""


class Wanted(Struct, frozen=True):
    """A search: the user, statuses and times that somebody looks for."""

    user: str | None
    statuses: tuple[NotificationStatus, ...]
    since: Instant | None
    until: Instant | None
    before: NotificationId | None

    @property
    def first_before(self) -> NotificationId | None:
        """The notification below which the search begins."""
        ends = [each for each in (self.before, None if self.until is None else first_id_at(self.until)) if each]
        return min(ends) if ends else None


@shows("/events", every_s=5)
async def events(desk: Desk) -> Response[bytes]:
    """Show what was looked for: by id, user, address, status and time."""
    text = desk.given("q")
    if text is not None and (notification_id := _id_in(text)) is not None:
        return redirect(desk.url(f"/events/{notification_id}"))
    devices = [] if text is None else await _devices_of(desk, text)
    user = desk.given("user") or (devices[0].user_id if devices else text)
    wanted = Wanted(user, _statuses(desk), _time(desk, "since"), _time(desk, "until"), _before(desk))
    found = await _search(desk, wanted)
    return desk.show(
        "events.html",
        text=text or "",
        devices=devices,
        user=user,
        records=found.items,
        onward=None if found.onward is None else cursors.of_notification(found.onward),
        looked_until=created_at(found.onward) if found.is_cut and found.onward else None,
        statuses=[each.value for each in NotificationStatus],
        chosen=set(desk.choices("status")),
        since=desk.given("since") or "",
        until=desk.given("until") or "",
        is_filtered=bool(text or wanted.statuses or wanted.since or wanted.until or wanted.user),
        format_id=format_id,
    )


@shows("/events/{id:str}", every_s=1)
async def event(desk: Desk) -> Response[bytes]:
    """Show one notification's whole story, without what it says."""
    return await _story(desk, shows_content=False)


@acts("/events/{id:str}/message", Right.MESSAGES)
async def message(desk: Desk) -> Response[bytes]:
    """Show the story with what it says; who looked is put on record."""
    await desk.record(Act.MESSAGE_SEEN, [desk.part("id")])
    return await _story(desk, shows_content=True)


@acts("/events/{id:str}/ask-cancel", Right.OPERATE)
async def ask_cancel(desk: Desk) -> Response[bytes]:
    """Say what cancelling does, and ask whether it is meant."""
    path = f"/events/{desk.part('id')}"
    what = [
        "What waits of it is not sent any more: its time, retries, and deliveries that are held back.",
        "What a provider has by now stays where it is; an attempt that is under way is its last.",
    ]
    return desk.confirm(Asking("Cancel it?", what, "Cancel it", f"{path}/cancel", dangerous=True, back=path))


@acts("/events/{id:str}/cancel", Right.OPERATE)
async def cancel(desk: Desk) -> Response[bytes]:
    """Take back what waits of a notification."""
    answer = await desk.ask("POST", "/v1/notifications/{}/cancel", desk.part("id"))
    is_over = answer["result"] == "cancelled"
    said = "It is cancelled." if is_over else "It is being sent now; no attempt is made after the present one."
    return desk.done(said, f"/events/{desk.part('id')}")


@acts("/events/{id:str}/retry", Right.OPERATE)
async def retry(desk: Desk) -> Response[bytes]:
    """Begin a new round for what failed, expired, or is not known of a notification."""
    await desk.ask("POST", "/v1/notifications/{}/replay", desk.part("id"))
    return desk.done("A new round has begun.", f"/events/{desk.part('id')}")


async def _story(desk: Desk, *, shows_content: bool) -> Response[bytes]:
    story = await desk.ask("GET", "/v1/notifications/{}", desk.part("id"))
    return desk.show(
        "event.html",
        story=story,
        shows_content=shows_content,
        fields=_fields(story),
        retried=_RETRIED,
        rulings=await _rulings(desk, parse_id(story["notification"]["id"])),
    )


async def _rulings(desk: Desk, notification_id: NotificationId) -> list[RulingView] | None:
    """Ask the rules again, as ``explain`` does; None where the store does not have the whole notification."""
    found = await desk.api.views.detail(desk.app, notification_id)
    if found is None or not found.record.content_known or found.record.duplicate_of is not None:
        return None
    return [ruling_view(each) for each in await desk.api.explain.rulings(found.record.notification)]


def _fields(story: dict[str, Any]) -> list[tuple[str, Any]]:
    """List what the message says, field by field; what is not said is left out."""
    return [(name, value) for name, value in story["content"].items() if value not in (None, {}, [], "")]


def _id_in(text: str) -> str | None:
    try:
        return format_id(parse_id(text)) if len(text) == _ID_CHARS else None
    except ValueError:
        return None


async def _devices_of(desk: Desk, text: str) -> list[Device]:
    """Find the devices that *text* is the token or address of: each platform writes it in its own way."""
    forms = sorted({text, *(canonical(text) for canonical in desk.api.canonical.values())})
    found = [each for each in await desk.api.devices.with_tokens(desk.app, forms) if each is not None]
    for form in forms:
        found += await desk.api.devices.with_contact(desk.app, form, _USERS) or []
    return found


def _statuses(desk: Desk) -> tuple[NotificationStatus, ...]:
    known = set(NotificationStatus)
    return tuple(NotificationStatus(each) for each in desk.choices("status") if each in known)


def _time(desk: Desk, name: str) -> Instant | None:
    """Read a time as the browser's field gives it, in UTC."""
    text = desk.given(name)
    if text is None:
        return None
    try:
        return max(Instant(0), from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC)))  # no id is older
    except ValueError:
        raise InvalidRequest((Fault(name, "no time"),)) from None


def _before(desk: Desk) -> NotificationId | None:
    cursor = desk.given("cursor")
    return None if cursor is None else cursors.notification(cursor)


async def _search(desk: Desk, wanted: Wanted) -> Looked[NotificationRecord, NotificationId]:
    user = None if wanted.user is None else UserId(wanted.user)

    def read(before: NotificationId | None, n: int) -> Awaitable[list[NotificationRecord]]:
        return desk.api.views.history(HistoryQuery(desk.app, user, (), before, n))

    return await look(
        read,
        lambda record: record.notification.id,
        wanted.first_before,
        (lambda record: record.status in wanted.statuses) if wanted.statuses else None,
        lambda record: record.notification.created_at < (wanted.since or 0),
    )


PAGE = Page("events", "Events", [events, event, message, ask_cancel, cancel, retry])
