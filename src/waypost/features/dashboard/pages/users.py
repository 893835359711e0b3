"""Users: find one by id, and see devices, preferences, feed, notifications and profile on one page."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote

import msgspec
from litestar import Response

from waypost.domain.device import CONTACTS
from waypost.domain.ids import UserId
from waypost.features.dashboard.desk import Desk, redirect
from waypost.features.dashboard.handling import shows
from waypost.features.dashboard.pages.user_changes import HANDLERS
from waypost.features.dashboard.site import Page

_SHOWN: Final = 10
"""The notifications and entries of the feed that are shown: the newest."""


@shows("/users")
async def users(desk: Desk) -> Response[bytes]:
    """Ask for the user, and go there."""
    user = desk.given("q")
    if user is not None:
        return redirect(desk.url(f"/users/{quote(user, safe='')}"))
    return desk.show("users.html")


@shows("/users/{user:str}")
async def user(desk: Desk) -> Response[bytes]:
    """Show what is known of a user; messages are not shown."""
    user_id = desk.part("user")
    devices, profile, preferences, feed, topics, opted_out, sent = await asyncio.gather(
        desk.ask("GET", "/v1/devices/{}", user_id, query={"inactive": "true"}),
        desk.ask("GET", "/v1/users/{}", user_id),
        desk.ask("GET", "/v1/users/{}/preferences", user_id),
        desk.ask("GET", "/v1/users/{}/feed", user_id, query={"limit": _SHOWN}),
        desk.ask("GET", "/v1/users/{}/topics", user_id),
        desk.ask("GET", "/v1/users/{}/bulk-opt-out", user_id),
        desk.ask("GET", "/v1/notifications", query={"user_id": user_id, "limit": _SHOWN}),
    )
    standing = await desk.api.erasures.of(desk.app, UserId(user_id))
    return desk.show(
        "user.html",
        user=user_id,
        here=f"/users/{quote(user_id, safe='')}",
        devices=sorted(devices["items"], key=lambda each: not each["active"]),
        platforms=desk.api.platforms,
        contacts=sorted(CONTACTS),
        profile=profile,
        attributes=msgspec.json.format(msgspec.json.encode(profile["attributes"])).decode(),
        preferences=preferences,
        feed=feed,
        topics=topics,
        opted_out=opted_out["opted_out"],
        sent=sent["items"],
        erasure=standing,
    )


PAGE = Page("users", "Users", [users, user, *HANDLERS])
