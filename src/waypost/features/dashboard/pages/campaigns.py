"""Campaigns: list them, follow one, see what it would do and what its variants did, and order it about."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from litestar import Response

from waypost.domain.errors import Fault, InvalidRequest, NotFound, WaypostError
from waypost.domain.variants import HOLDOUT_LIMIT
from waypost.entrypoints.rest.problems import problem_of
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page

_SHOWN: Final = 50
_FORECASTED: Final = frozenset({"draft", "approved", "scheduled"})
_ORDERS: Final = {
    "draft": ("approve", "start", "schedule", "cancel"),
    "approved": ("start", "schedule", "cancel"),
    "scheduled": ("start", "schedule", "cancel"),
    "running": ("pause", "cancel"),
    "paused": ("resume", "cancel"),
}
"""What may be ordered of a campaign in each state."""
_DONE: Final = {
    "approve": "The campaign is approved as it stands.",
    "start": "The campaign begins within a second.",
    "schedule": "The campaign is scheduled.",
    "pause": "The campaign is paused: nobody more is told until it is resumed.",
    "resume": "The campaign goes on.",
    "cancel": "The campaign is cancelled.",
}
_ASKED: Final = {
    "start": ("It begins within a second and sends to everybody it is for: {audience}.", "Start it"),
    "cancel": (
        "It ends for good. Deliveries under way end with their present attempt; whoever was told stays told.",
        "Cancel it",
    ),
}
"""What is asked about first: what will happen, and the button."""


@shows("/campaigns")
async def campaigns(desk: Desk) -> Response[bytes]:
    """List campaigns by name."""
    found = await desk.ask("GET", "/v1/campaigns", query={"limit": _SHOWN, "cursor": desk.given("cursor")})
    return desk.show("campaigns.html", campaigns=found["items"], following=found["next"], quote=_quoted)


@shows("/campaigns/-/new", Right.CAMPAIGN)
async def new_campaign(desk: Desk) -> Response[bytes]:
    """Show the form of a new campaign."""
    return await _form(desk, {})


@acts("/campaigns/-/new", Right.CAMPAIGN)
async def draft_campaign(desk: Desk) -> Response[bytes]:
    """Draft a campaign; what is wrong with it is said above the form, which keeps what was entered."""
    name = desk.form.get("name", "").strip()
    try:
        if not name:
            raise InvalidRequest((Fault("name", "required"),))
        await _refuse_known(desk, name)
        await desk.ask("PUT", "/v1/campaigns/{}", name, body=drafted(desk.form))
    except WaypostError as error:
        return await _form(desk, desk.form, error)
    return desk.done("A draft: nothing is sent before it is started.", f"/campaigns/{_quoted(name)}")


@shows("/campaigns/{campaign:str}", every_s=3)
async def campaign(desk: Desk) -> Response[bytes]:
    """Show how a campaign stands, and what its variants did."""
    name = desk.part("campaign")
    found = await desk.ask("GET", "/v1/campaigns/{}", name)
    return desk.show(
        "campaign.html",
        campaign=found,
        here=f"/campaigns/{_quoted(name)}",
        audience=audience_of(found),
        done=_done_of(found),
        orders=_ORDERS.get(found["state"], ()) if desk.may(Right.CAMPAIGN) else (),
        needs_approval=_needs_approval(desk) and found["state"] == "draft",
        may_forecast=found["state"] in _FORECASTED,
        results=await _results(desk, name) if found["started_at"] else None,
    )


@shows("/campaigns/{campaign:str}/forecast")
async def campaign_forecast(desk: Desk) -> Response[bytes]:
    """Show what a campaign that has not begun would do."""
    name = desk.part("campaign")
    found, forecast = await asyncio.gather(
        desk.ask("GET", "/v1/campaigns/{}", name), desk.ask("GET", "/v1/campaigns/{}/forecast", name)
    )
    return desk.show("forecast.html", campaign=found, forecast=forecast, here=f"/campaigns/{_quoted(name)}")


@acts("/campaigns/{campaign:str}/{order:str}", Right.CAMPAIGN)
async def order_campaign(desk: Desk) -> Response[bytes]:
    """Order a campaign about; what cannot be taken back is asked about first."""
    name, order = desk.part("campaign"), desk.part("order")
    if order not in _DONE:
        raise NotFound("no such order")
    here = f"/campaigns/{_quoted(name)}"
    if order in _ASKED and "sure" not in desk.form:
        found = await desk.ask("GET", "/v1/campaigns/{}", name)
        what, button = _ASKED[order]
        said = [what.format(audience=audience_of(found))]
        title, sure = f"{order.capitalize()} {name}?", (("sure", "yes"),)
        return desk.confirm(Asking(title, said, button, f"{here}/{order}", sure, order == "cancel", here))
    body = {"at": _moment(desk)} if order == "schedule" else None
    await desk.ask("POST", f"/v1/campaigns/{{}}/{order}", name, body=body)
    return desk.done(_DONE[order], here)


def drafted(form: Mapping[str, str]) -> dict[str, Any]:
    """Build a campaign from what the form says; fields that were left empty are left out."""
    said = {name: value.strip() for name, value in form.items() if value.strip()}
    notification: dict[str, Any] = {name: said[name] for name in ("title", "body", "link", "type") if name in said}
    if "template" in said:
        notification["template"] = {"name": said["template"]}
    if "second_title" in said:
        notification["variants"] = [{"name": "first"}, {"name": "second", "title": said["second_title"]}]
    elif "holdout" in said:  # who is told is compared with who is not
        notification["variants"] = [{"name": "told"}]
    body: dict[str, Any] = {"notification": notification}
    for name, to in (("holdout", notification), ("rate", body)):
        if name in said:
            to[name] = _whole(said[name], name)
    if "gradually" in said:
        body["ramp"] = {}
    match said.get("audience"):
        case "segment" | "topic" as kind:
            body["to"] = {kind: said.get("named", "")}
        case "list":
            body["recipients"] = said.get("users", "").split()
        case _:
            body["registry"] = {}
    return body


def audience_of(campaign: Mapping[str, Any]) -> str:
    """Say whom a campaign is for."""
    asked = campaign["asked"]
    if (to := asked.get("to")) is not None:
        return next(
            (f"the {kind} {to[kind]}" for kind in ("segment", "topic") if to.get(kind)),
            "whom a filter of its own finds",
        )
    if asked.get("registry") is not None:
        chosen = [name for name, value in asked["registry"].items() if value]
        return f"users with devices, chosen by {', '.join(chosen)}" if chosen else "every user with a device"
    return f"a list of {campaign['listed']}"


def _done_of(campaign: Mapping[str, Any]) -> float | None:
    """Return the part that is settled of those who are known to be told."""
    everyone = (campaign["listed"] or campaign["enqueued"] + campaign["left_out"]) - campaign["left_out"]
    settled = sum(n for status, n in campaign["counts"].items() if status not in {"pending", "processing"})
    return settled / everyone if everyone > 0 else None


async def _form(desk: Desk, said: Mapping[str, str], error: WaypostError | None = None) -> Response[bytes]:
    templates, segments, topics = await asyncio.gather(
        *(desk.ask("GET", f"/v1/{each}", query={"limit": 100}) for each in ("templates", "segments", "topics"))
    )
    problem = None if error is None else problem_of(error)
    return desk.show(
        "campaign_new.html",
        200 if problem is None else problem.status,
        said=said,
        problem=problem,
        templates=[each["name"] for each in templates["items"] if each["published"]],
        segments=[each["name"] for each in segments["items"]],
        topics=[each["name"] for each in topics["items"]],
        types=sorted(desk.ground.config.apps[desk.app].types),
        holdout_limit=HOLDOUT_LIMIT,
    )


async def _refuse_known(desk: Desk, name: str) -> None:
    """Refuse the name of a campaign that there is: a form that was filled anew would take its place."""
    try:
        await desk.ask("GET", "/v1/campaigns/{}", name)
    except NotFound:
        return
    raise InvalidRequest((Fault("name", "there is such a campaign already"),))


async def _results(desk: Desk, name: str) -> dict[str, Any] | None:
    """Return what the variants did; None where nothing is counted."""
    if not getattr(desk.ground.config.features.get("analytics"), "enabled", False):
        return None
    found: dict[str, Any] = await desk.ask("GET", "/v1/campaigns/{}/results", name)
    return found


def _needs_approval(desk: Desk) -> bool:
    return desk.ground.config.apps[desk.app].campaigns.approval


def _moment(desk: Desk) -> str:
    """Read the time of the form, which is in UTC."""
    try:
        return datetime.fromisoformat(desk.form.get("at", "")).replace(tzinfo=UTC).isoformat()
    except ValueError:
        raise InvalidRequest((Fault("at", "no time"),)) from None


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequest((Fault(name, "no number"),))
    return int(text)


def _quoted(name: str) -> str:
    return quote(name, safe="")


PAGE = Page(
    "campaigns",
    "Campaigns",
    [campaigns, new_campaign, draft_campaign, campaign, campaign_forecast, order_campaign],
)
