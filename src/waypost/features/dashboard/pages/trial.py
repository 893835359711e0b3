"""A test send from the page of providers: to one device, after saying what will happen; its story is shown next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar import Response

from waypost.domain.device import Platform
from waypost.domain.errors import Fault, InvalidRequest, WaypostError
from waypost.domain.time import MINUTE_MS, SECOND_MS
from waypost.entrypoints.rest.problems import problem_of
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.providers import providers, samples_of
from waypost.ports.audit import Act

_FIELDS: Final = ("user", "device", "platform", "token", "title", "body")
_TITLE: Final = "A test"
_BODY: Final = "Sent from the dashboard to see that it arrives."
_TTL_S: Final = 5 * MINUTE_MS // SECOND_MS
_HERE: Final = "/providers/-/test"
_REAL: Final = (
    "It is a real notification: who holds the device sees it, and it is counted as any other. It is tried for five"
    " minutes at most."
)
_KEPT: Final = "A token that nobody has registered is kept, as a device without a user."


@shows(_HERE, Right.OPERATE)
async def ask_trial(desk: Desk) -> Response[bytes]:
    """Show the form."""
    given = {name: desk.given(name) or "" for name in _FIELDS}
    return _form(desk, {"title": _TITLE, "body": _BODY} | {name: text for name, text in given.items() if text})


@acts(_HERE, Right.OPERATE)
async def send_trial(desk: Desk) -> Response[bytes]:
    """Say what a test will do, and ask whether it is meant; then send it."""
    entered = {name: desk.form.get(name, "").strip() for name in _FIELDS}
    try:
        body = await _submission(desk, entered)
        explained = await desk.ask("POST", "/v1/explain", body=body)
        used = _credentials(explained)
    except WaypostError as error:
        problem = problem_of(error)
        return _form(desk, entered, problem.status, problem)
    if "sure" not in desk.form:
        what = [*await _said(desk, explained), _REAL, *([_KEPT] if entered["token"] else [])]
        fields = [*entered.items(), ("sure", "yes")]
        return desk.confirm(Asking("Send this test?", what, "Send it", _HERE, fields, back=_HERE))
    await desk.record(Act.PROVIDER_TRIED, used)
    told = await desk.ask("POST", "/v1/notifications", body=body)
    return desk.done("Sent as a test: this is what becomes of it.", f"/events/{told['id']}")


async def _submission(desk: Desk, entered: Mapping[str, str]) -> dict[str, Any]:
    """Build what is submitted; InvalidRequest where the form names no device, or two."""
    said = {name: entered[name] for name in ("title", "body") if entered[name]}
    body: dict[str, Any] = {**said, "ttl": _TTL_S, "dedup_window": 0}
    if entered["token"]:
        if entered["user"] or entered["device"]:
            raise InvalidRequest((Fault("token", "stands in place of a user and a device; leave one out"),))
        return body | {"device": {"platform": entered["platform"], **_token(entered["token"])}}
    if missing := [Fault(name, "required, or a token") for name in ("user", "device") if not entered[name]]:
        raise InvalidRequest(tuple(missing))
    known = (await desk.ask("GET", "/v1/devices/{}", entered["user"]))["items"]
    platforms = [Platform(each["platform"]) for each in known if each["device_id"] == entered["device"]]
    channels = [desk.api.explain.routing.channels.get(each) for each in platforms]
    return body | {
        "user_id": entered["user"],
        "device_ids": [entered["device"]],
        "channels": [each for each in channels if each is not None],
    }


def _token(text: str) -> dict[str, Any]:
    """Read a token, or the subscription of a browser."""
    if not text.startswith("{"):
        return {"token": text}
    try:
        return {"subscription": msgspec.json.decode(text)}
    except msgspec.DecodeError as error:
        raise InvalidRequest((Fault("token", f"no JSON: {error}"),)) from None


def _credentials(explained: dict[str, Any]) -> Sequence[str]:
    """Name the credentials that it would be sent with; InvalidRequest with the reasons where nothing is."""
    sent = [each["credential"] for each in explained["targets"] if each["rendered"] and not _refusal(each)]
    if not sent:
        why = [f"{each['device_id']}: {_refusal(each) or 'it would wait'}" for each in explained["targets"]]
        why = why or [f"{each['device_id']}: {each['reason']}" for each in explained["routing"]]
        raise InvalidRequest(tuple(Fault("", f"nothing would be sent to {each}") for each in why))
    return sorted({name.partition("/")[2] for name in sent})


def _refusal(target: dict[str, Any]) -> str | None:
    """Say why nothing would be sent to a target; None where it would."""
    if failure := target.get("fails"):
        return f"{failure['code']}, {failure['reason']}"
    refused: str | None = target["suppressed"] or (target["rendered"] or {}).get("refused")
    return refused


async def _said(desk: Desk, explained: dict[str, Any]) -> list[str]:
    """Say of each target what it gets, and by whom."""
    held = {each.name for each in providers(desk, await samples_of(desk)) if each.is_open}
    lines = []
    for each in explained["targets"]:
        name, rendered = each["credential"].partition("/")[2], each["rendered"]
        size = f"{rendered['size_bytes']:,} of {rendered['limit_bytes']:,} bytes"
        lines.append(f"{each['device_id']} gets it by {name}: {size}.")
        if name in held:
            lines.append(f"The breaker of {name} is open: it waits there until the provider answers again.")
    return lines


def _form(desk: Desk, entered: Mapping[str, str], status: int = 200, problem: Any = None) -> Response[bytes]:
    values = dict.fromkeys(_FIELDS, "") | dict(entered)
    return desk.show("trial.html", status, entered=values, platforms=desk.api.platforms, problem=problem, action=_HERE)


HANDLERS: Final = [ask_trial, send_trial]
