"""Keys and audit: who may call the API, and who ordered what; admins make, rotate and revoke keys."""

from __future__ import annotations

from typing import Any, Final

from litestar import Response

from waypost.domain.errors import Fault, InvalidRequest, WaypostError
from waypost.domain.scope import Scope
from waypost.domain.time import DAY_MS, SECOND_MS
from waypost.entrypoints.rest.problems import problem_of
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.looking import SHOWN
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.ports.audit import Act

_DAY_S: Final = DAY_MS // SECOND_MS
_DAYS: Final = "90"
_OVERLAPS: Final = {"0": "at once", "3600": "in an hour", "86400": "in a day", "604800": "in a week"}
"""How long both keys hold when one is rotated, seconds, and as people say it."""
_USUAL: Final = "86400"


@shows("/access", Right.OPERATE)
async def access(desk: Desk) -> Response[bytes]:
    """List the keys, and the record of orders, the newest first."""
    query = {name: desk.given(name) for name in ("act", "by", "cursor")}
    record = await desk.ask("GET", "/v1/audit", query=query | {"limit": SHOWN})
    keys = [] if query["cursor"] else (await desk.ask("GET", "/v1/keys"))["items"]
    return desk.show("access.html", keys=keys, record=record, wanted=query, acts=[each.value for each in Act])


@shows("/access/keys/-/new", Right.ADMINISTER)
async def new_key(desk: Desk) -> Response[bytes]:
    """Show the form of a new key."""
    return _form(desk, caller="", chosen=(), days=_DAYS)


@acts("/access/keys/-/new", Right.ADMINISTER)
async def make_key(desk: Desk) -> Response[bytes]:
    """Make a key and show it, once; what is wrong is said above the form."""
    caller, chosen, days = desk.form.get("caller", "").strip(), desk.posted("scope"), desk.form.get("days", "").strip()
    try:
        body: dict[str, Any] = {"caller": caller, "scopes": chosen}
        if days:
            body["expires_in"] = _whole(days) * _DAY_S
        made = await desk.ask("POST", "/v1/keys", body=body)
    except WaypostError as error:
        problem = problem_of(error)
        return _form(desk, problem.status, problem, caller=caller, chosen=chosen, days=days)
    return desk.show("key_made.html", made=made, replaced=None, ends=None)


@shows("/access/keys/{prefix:str}/rotate", Right.ADMINISTER)
async def ask_rotate(desk: Desk) -> Response[bytes]:
    """Say what rotating does, and ask when the old key ends."""
    return desk.show("key_rotate.html", prefix=desk.part("prefix"), overlaps=_OVERLAPS, usual=_USUAL)


@acts("/access/keys/{prefix:str}/rotate", Right.ADMINISTER)
async def rotate(desk: Desk) -> Response[bytes]:
    """Make a key in place of another, and show it, once."""
    prefix, overlap = desk.part("prefix"), desk.form.get("overlap", "")
    if overlap not in _OVERLAPS:
        raise InvalidRequest((Fault("overlap", "none of those to choose from"),))
    made = await desk.ask("POST", "/v1/keys/{}/rotate", prefix, body={"overlap": int(overlap)})
    return desk.show("key_made.html", made=made, replaced=prefix, ends=_OVERLAPS[overlap])


@acts("/access/keys/{prefix:str}/ask-revoke", Right.ADMINISTER)
async def ask_revoke(desk: Desk) -> Response[bytes]:
    """Say what revoking does, and ask whether it is meant."""
    prefix = desk.part("prefix")
    what = [
        f"Whoever calls with the key {prefix} is refused from now on. That cannot be undone.",
        "To give its caller another one first, rotate it.",
    ]
    return desk.confirm(Asking(f"Revoke {prefix}?", what, "Revoke it", f"/access/keys/{prefix}/revoke", dangerous=True))


@acts("/access/keys/{prefix:str}/revoke", Right.ADMINISTER)
async def revoke(desk: Desk) -> Response[bytes]:
    """Revoke a key."""
    await desk.ask("DELETE", "/v1/keys/{}", desk.part("prefix"))
    return desk.done(f"{desk.part('prefix')} is revoked.", "/access")


def _form(desk: Desk, status: int = 200, problem: Any = None, **entered: Any) -> Response[bytes]:
    return desk.show("key_new.html", status, scopes=[each.value for each in Scope], problem=problem, **entered)


def _whole(days: str) -> int:
    if not (days.isascii() and days.isdigit()):
        raise InvalidRequest((Fault("days", "no number"),))
    return int(days)


PAGE = Page(
    "access",
    "Keys and audit",
    [access, new_key, make_key, ask_rotate, rotate, ask_revoke, revoke],
    Right.OPERATE,
)
