"""Audiences: segments, which a filter chooses, and topics, which users hear."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import quote

import msgspec
from litestar import Response

from waypost.domain.errors import Fault, InvalidRequest, NotFound, WaypostError
from waypost.entrypoints.rest.problems import problem_of
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.ports.audit import Act

_SHOWN: Final = 50
_EXAMPLE: Final = '{"attribute": {"name": "plan", "is": "premium"}}'


@shows("/audiences")
async def audiences(desk: Desk) -> Response[bytes]:
    """List segments and topics by name."""
    segments, topics = await asyncio.gather(
        desk.ask("GET", "/v1/segments", query={"limit": _SHOWN, "cursor": desk.given("segments")}),
        desk.ask("GET", "/v1/topics", query={"limit": _SHOWN, "cursor": desk.given("topics")}),
    )
    return desk.show("audiences.html", segments=segments, topics=topics, quote=_quoted, text_of=_text)


@shows("/audiences/-/segment", Right.CAMPAIGN)
async def edit_segment(desk: Desk) -> Response[bytes]:
    """Show the form of a segment: a new one, or one that there is."""
    name = desk.given("name") or ""
    if not name:
        return _segment(desk, "", _EXAMPLE)
    found = await desk.ask("GET", "/v1/segments/{}", name)
    return _segment(desk, name, msgspec.json.format(_text(found["filter"])))


@acts("/audiences/-/segment", Right.CAMPAIGN)
async def save_segment(desk: Desk) -> Response[bytes]:
    """Count whom the filter chooses, or save it; what is wrong is said above the form."""
    name, text = desk.form.get("name", "").strip(), desk.form.get("filter", "")
    try:
        chosen = _filter(text)
        if "count" in desk.form:
            counted = await desk.ask("POST", "/v1/segments/preview", body={"filter": chosen})
            return _segment(desk, name, text, counted=counted)
        if not name:
            raise InvalidRequest((Fault("name", "required"),))
        await desk.ask("PUT", "/v1/segments/{}", name, body={"filter": chosen})
    except WaypostError as error:
        return _segment(desk, name, text, error)
    return desk.done(f"The segment {name} is saved.", "/audiences")


@acts("/audiences/-/segment/remove", Right.CAMPAIGN)
async def remove_segment(desk: Desk) -> Response[bytes]:
    """Remove a segment, saying first what that does."""
    name = desk.form.get("name", "")
    if "sure" not in desk.form:
        what = "Nothing can name it any more. Campaigns keep the filter that they were changed with last."
        fields = (("name", name), ("sure", "yes"))
        return desk.confirm(Asking(f"Remove {name}?", [what], "Remove it", "/audiences/-/segment/remove", fields, True))
    await desk.ask("DELETE", "/v1/segments/{}", name)
    return desk.done(f"The segment {name} is removed.", "/audiences")


@acts("/audiences/-/topic", Right.CAMPAIGN)
async def save_topic(desk: Desk) -> Response[bytes]:
    """Make a topic, or say something else of it."""
    name, description = desk.form.get("name", "").strip(), desk.form.get("description", "").strip()
    if not name:
        raise InvalidRequest((Fault("name", "required"),))
    await desk.ask("PUT", "/v1/topics/{}", name, body={"description": description, "open": "open" in desk.form})
    return desk.done(f"The topic {name} is saved.", f"/audiences/topics/{_quoted(name)}")


@shows("/audiences/topics/{topic:str}")
async def topic(desk: Desk) -> Response[bytes]:
    """Show a topic, and a page of who hears it."""
    name = desk.part("topic")
    found = await desk.ground.store.topics.find(desk.app, name)  # the API counts who hears it, which reads all of them
    if found is None:
        raise NotFound("no such topic")
    query = {"limit": _SHOWN, "cursor": desk.given("cursor")}
    members = await desk.ask("GET", "/v1/topics/{}/members", name, query=query)
    here = f"/audiences/topics/{_quoted(name)}"
    return desk.show("topic.html", topic=found, members=members, here=here, quote=_quoted)


@acts("/audiences/topics/{topic:str}/members", Right.CAMPAIGN)
async def change_members(desk: Desk) -> Response[bytes]:
    """Have users hear a topic, or not any more."""
    name, users = desk.part("topic"), desk.form.get("users", "").split()
    change = "remove" if "remove" in desk.form else "add"
    await desk.record(Act.TOPIC_CHANGED, [name])
    await desk.ask("POST", "/v1/topics/{}/members", name, body={change: users})
    done = "not hear it any more" if change == "remove" else "hear it"
    return desk.done(f"{len(users)} users {done}.", f"/audiences/topics/{_quoted(name)}")


def _segment(
    desk: Desk, name: str, text: str, error: WaypostError | None = None, counted: dict[str, Any] | None = None
) -> Response[bytes]:
    problem = None if error is None else problem_of(error)
    status = 200 if problem is None else problem.status
    return desk.show("segment.html", status, name=name, text=text, problem=problem, counted=counted, quote=_quoted)


def _filter(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest((Fault("filter", f"no JSON: {error}"),)) from None


def _text(chosen: Any) -> str:
    return msgspec.json.encode(chosen).decode()


def _quoted(name: str) -> str:
    return quote(name, safe="")


PAGE = Page(
    "audiences",
    "Audiences",
    [audiences, edit_segment, save_segment, remove_segment, save_topic, topic, change_members],
)
