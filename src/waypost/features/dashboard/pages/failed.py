"""Failed: deliveries that ended for good, and a new round for some of them, or for all that match."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

from litestar import Response
from msgspec import Struct

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.domain.ids import NotificationId, created_at, format_id
from waypost.entrypoints.rest import cursors
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.looking import look
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.ports.views import DeadLetter, DeadQuery

_MOST: Final = 100
"""The most notifications that are chosen one by one."""
_PAGE: Final = 500
_PAGES: Final = 4
"""How many pages of dead letters are replayed before somebody is asked whether to go on."""
_FILTER: Final = ("code", "user", "channel")
_WHAT: Final = (
    "Each begins a new round: its deliveries that failed, expired, or of which nobody knows are tried again, with as"
    " much time as they had at first. What a provider took is not sent again.",
    "Nothing is retried whose user was erased, or that is under way by now.",
)


class Filter(Struct, frozen=True):
    """A choice among the dead letters."""

    code: str | None
    user: str | None
    channel: str | None

    def matches(self, letter: DeadLetter) -> bool:
        """Tell whether a dead letter is chosen."""
        receipt, user = letter.receipt, letter.record.notification.user_id
        pairs = ((self.code, receipt.code), (self.user, user), (self.channel, receipt.channel))
        return all(wanted is None or wanted == found for wanted, found in pairs)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields that say it in a form."""
        return [(name, value) for name in _FILTER if (value := getattr(self, name))]


@shows("/failed")
async def failed(desk: Desk) -> Response[bytes]:
    """List what failed for good, the newest first."""
    wanted = Filter(*(desk.given(name) for name in _FILTER))
    cursor = desk.given("cursor")
    before = None if cursor is None else cursors.target(cursor)

    def read(after: tuple[NotificationId, int] | None, n: int) -> Awaitable[list[DeadLetter]]:
        return desk.api.views.dead(DeadQuery(desk.app, before=after, limit=n))

    found = await look(read, _key_of, before, wanted.matches if wanted.fields else None)
    return desk.show(
        "failed.html",
        letters=found.items,
        wanted=wanted,
        onward=None if found.onward is None else cursors.of_target(*found.onward),
        looked_until=created_at(found.onward[0]) if found.is_cut and found.onward else None,
        channels=sorted(desk.api.channels),
        most=_MOST,
        format_id=format_id,
    )


@acts("/failed/ask", Right.OPERATE)
async def ask_retry(desk: Desk) -> Response[bytes]:
    """Say what a retry of those that were checked will do, and ask whether it is meant."""
    ids = _chosen(desk)
    count = f"{len(ids)} notification{'s' if len(ids) > 1 else ''}"
    return desk.confirm(
        Asking(f"Retry {count}?", _WHAT, f"Retry {count}", "/failed/retry", [("id", each) for each in ids])
    )


@acts("/failed/retry", Right.OPERATE)
async def retry(desk: Desk) -> Response[bytes]:
    """Retry those that were chosen."""
    answer = await desk.ask("POST", "/v1/dead/replay", body={"ids": _chosen(desk)})
    return desk.done(_said(answer["results"]), "/failed")


@acts("/failed/ask-all", Right.OPERATE)
async def ask_retry_all(desk: Desk) -> Response[bytes]:
    """Say what a retry of all that match will do, and ask whether it is meant."""
    wanted = _posted(desk)
    told = ", ".join(f"{name} {value}" for name, value in wanted.fields) or "every one"
    first = f"All dead letters of {desk.app} are retried: {told}. After {_PAGE * _PAGES:,} of them you are asked again."
    return desk.confirm(
        Asking("Retry all that match?", [first, *_WHAT], "Retry all", "/failed/retry-all", wanted.fields)
    )


@acts("/failed/retry-all", Right.OPERATE)
async def retry_all(desk: Desk) -> Response[bytes]:
    """Retry all that match, so many at a time."""
    wanted, cursor = _posted(desk), desk.form.get("cursor") or None
    results: list[dict[str, Any]] = []
    for _ in range(_PAGES):
        ids, cursor = await _next(desk, wanted, cursor)
        if ids:
            answer = await desk.ask("POST", "/v1/dead/replay", body={"ids": ids})
            results += answer["results"]
        if cursor is None:
            return desk.done(_said(results), "/failed")
    what, fields = [_said(results), "There are more."], [*wanted.fields, ("cursor", cursor or "")]
    return desk.confirm(Asking("Go on?", what, "Retry more", "/failed/retry-all", fields))


async def _next(desk: Desk, wanted: Filter, cursor: str | None) -> tuple[list[str], str | None]:
    """Find the notifications of the next page of dead letters that match, and where the one after begins."""
    before = None if cursor is None else cursors.target(cursor)
    page = await desk.api.views.dead(DeadQuery(desk.app, before=before, limit=_PAGE))
    chosen = dict.fromkeys(format_id(each.receipt.notification_id) for each in page if wanted.matches(each))
    return list(chosen), cursors.of_target(*_key_of(page[-1])) if len(page) == _PAGE else None


def _key_of(letter: DeadLetter) -> tuple[NotificationId, int]:
    return letter.receipt.notification_id, letter.receipt.n


def _chosen(desk: Desk) -> list[str]:
    ids = list(dict.fromkeys(desk.posted("id")))
    if not 1 <= len(ids) <= _MOST:
        raise WaypostError(f"choose 1 to {_MOST} notifications; these are {len(ids)}", ErrorCode.INVALID_REQUEST)
    return ids


def _posted(desk: Desk) -> Filter:
    return Filter(*(desk.form.get(name) or None for name in _FILTER))


def _said(results: list[dict[str, Any]]) -> str:
    """Say what became of a retry."""
    begun = sum(1 for each in results if each.get("error") is None)
    left = len(results) - begun
    said = f"{begun:,} began a new round."
    return said if not left else f"{said} {left:,} could not: they are under way by now, or gone."


PAGE = Page("failed", "Failed", [failed, ask_retry, retry, ask_retry_all, retry_all])
