"""Changes of a user: devices, preferences and profile, and that everything about them is forgotten."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec
from litestar import Response

from waypost.domain.device import CONTACTS
from waypost.domain.errors import Fault, InvalidRequest
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.operators import Right
from waypost.ports.audit import Act

_ERASED: Final = (
    "Notifications of this user that are still open are cancelled. Devices, contacts, preferences, profile, feed, what"
    " messages said and what the user did are deleted, and the id is removed from the records that stay.",
    "It begins at once, goes on in the background for at least a minute, and cannot be undone.",
    "What is sent to this id from now on is accepted and belongs to somebody new: stop sending first.",
)


@acts("/users/{user:str}/register", Right.OPERATE)
async def register_device(desk: Desk) -> Response[bytes]:
    """Register a device or a contact of the user."""
    user, kind, token = desk.part("user"), desk.form.get("platform", ""), desk.form.get("token", "").strip()
    device = desk.form.get("device_id", "").strip()
    if kind in CONTACTS:
        await desk.record(Act.DEVICE_REGISTERED, [kind])
        await desk.ask("PUT", "/v1/users/{}/contacts/{}", user, kind, body={"address": token})
        return _back(desk, f"The contact ({kind}) is registered.")
    if not device:
        raise InvalidRequest((Fault("device_id", "required: the id that the app gives to this installation"),))
    await desk.record(Act.DEVICE_REGISTERED, [kind])
    await desk.ask("PUT", "/v1/devices/{}/{}", user, device, body={"platform": kind, "token": token})
    return _back(desk, f"The device {device} is registered.")


@acts("/users/{user:str}/deactivate", Right.OPERATE)
async def deactivate_device(desk: Desk) -> Response[bytes]:
    """Ask whether a device is meant; then deactivate it."""
    device = desk.form.get("device_id", "")
    here = f"/users/{quote(desk.part('user'), safe='')}"
    if "sure" not in desk.form:
        what = "Nothing more is sent to it until the app registers it again, which most apps do when they are opened."
        fields = (("device_id", device), ("sure", "yes"))
        return desk.confirm(
            Asking(f"Deactivate {device}?", [what], "Deactivate it", f"{here}/deactivate", fields, back=here)
        )
    known = await desk.ask("GET", "/v1/devices/{}", desk.part("user"))
    await desk.record(Act.DEVICE_DEACTIVATED, [it["platform"] for it in known["items"] if it["device_id"] == device])
    await desk.ask("DELETE", "/v1/devices/{}/{}", desk.part("user"), device)
    return _back(desk, f"The device {device} is deactivated.")


@acts("/users/{user:str}/preferences", Right.OPERATE)
async def change_preferences(desk: Desk) -> Response[bytes]:
    """Change what differs from how it stands: what the app says stays the app's to say."""
    user = desk.part("user")
    before = await desk.ask("GET", "/v1/users/{}/preferences", user)
    wanted = set(desk.posted("wants"))
    body: dict[str, Any] = {}
    if (enabled := "all" in wanted) != before["enabled"]:
        body["enabled"] = enabled
    if channels := _changed(before["channels"], wanted, "channel:"):
        body["channels"] = channels
    types = {each["name"]: each["enabled"] for each in before["types"] if not each["critical"]}
    if changed := _changed(types, wanted, "type:"):
        body["types"] = {name: {"enabled": on} for name, on in changed.items()}
    start, end = desk.form.get("start", ""), desk.form.get("end", "")
    hours = {"start": start, "end": end} if start or end else None
    if hours != before["quiet_hours"]:
        body["quiet_hours"] = hours
    limit = _number(desk, "frequency_limit")
    if limit != before["frequency_limit"]:
        body["frequency_limit"] = limit
    return await _patched(desk, "/v1/users/{}/preferences", body, Act.PREFERENCES_CHANGED)


@acts("/users/{user:str}/profile", Right.OPERATE)
async def change_profile(desk: Desk) -> Response[bytes]:
    """Change language, time zone and attributes that differ from how they stand."""
    before = await desk.ask("GET", "/v1/users/{}", desk.part("user"))
    body: dict[str, Any] = {
        name: value
        for name in ("locale", "time_zone")
        if (value := desk.form.get(name, "").strip() or None) != before[name]
    }
    said, known = _attributes(desk), before["attributes"]
    changed = {name: value for name, value in said.items() if known.get(name) != value}
    gone = {name: None for name in known if name not in said}
    if changed or gone:
        body["attributes"] = changed | gone
    return await _patched(desk, "/v1/users/{}", body, Act.USER_CHANGED)


@acts("/users/{user:str}/bulk", Right.OPERATE)
async def change_opt_out(desk: Desk) -> Response[bytes]:
    """Opt the user out of bulk sends, or in again."""
    is_out = desk.form.get("out") == "yes"
    await desk.record(Act.USER_CHANGED, ["bulk opt-out" if is_out else "bulk opt-in"])
    await desk.ask("PUT" if is_out else "DELETE", "/v1/users/{}/bulk-opt-out", desk.part("user"))
    return _back(desk, "Bulk sends leave the user out now." if is_out else "Bulk sends reach the user again.")


@shows("/users/{user:str}/forget", Right.OPERATE)
async def ask_to_forget(desk: Desk) -> Response[bytes]:
    """Say what will happen, and have the id typed."""
    return _asked_to_forget(desk)


@acts("/users/{user:str}/forget", Right.OPERATE)
async def forget_user(desk: Desk) -> Response[bytes]:
    """Order the erasure, where the id was typed as it is."""
    if desk.form.get("typed", "").strip() != desk.part("user"):
        return _asked_to_forget(desk, is_wrong=True)
    order = await desk.ask("DELETE", "/v1/users/{}", desk.part("user"))
    return desk.done(f"The user is being erased (erasure {order['id']}).", "/users")


HANDLERS = [
    register_device,
    deactivate_device,
    change_preferences,
    change_profile,
    change_opt_out,
    ask_to_forget,
    forget_user,
]


def _asked_to_forget(desk: Desk, *, is_wrong: bool = False) -> Response[bytes]:
    user = desk.part("user")
    here = f"/users/{quote(user, safe='')}"
    return desk.show("forget.html", 400 if is_wrong else 200, user=user, here=here, what=_ERASED, is_wrong=is_wrong)


async def _patched(desk: Desk, path: str, body: dict[str, Any], act: Act) -> Response[bytes]:
    if not body:
        return _back(desk, "Nothing was changed.")
    await desk.record(act, [", ".join(body)])
    await desk.ask("PATCH", path, desk.part("user"), body=body)
    return _back(desk, "Changed.")


def _back(desk: Desk, notice: str) -> Response[bytes]:
    return desk.done(notice, f"/users/{quote(desk.part('user'), safe='')}")


def _changed(before: dict[str, bool], wanted: set[str], prefix: str) -> dict[str, bool]:
    """Return what is checked and was not, or the other way round."""
    return {name: not on for name, on in before.items() if (prefix + name in wanted) is not on}


def _number(desk: Desk, name: str) -> int | None:
    text = desk.form.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit()):
        raise InvalidRequest((Fault(name, "no number"),))
    return int(text) if text else None


def _attributes(desk: Desk) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(desk.form.get("attributes", "").strip() or "{}")
    except msgspec.DecodeError as error:
        raise InvalidRequest((Fault("attributes", f"no JSON: {error}"),)) from None
    if not isinstance(said, dict):
        raise InvalidRequest((Fault("attributes", 'no JSON object, such as {"plan": "premium"}'),))
    return said
