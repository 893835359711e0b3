"""The members of device groups, each told by one message to the group's token (its notification key).

Source: firebase.google.com, "Send messages to device groups". A group has 20 devices at most: what
is for more is a topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from waypost.channels.fcm.calls import FOR_ACCESS_TOKENS, Called, GoogleCalls, NotDone, not_done
from waypost.channels.fcm.settings import GOOGLE, FcmSettings
from waypost.channels.push.reading import read_json
from waypost.domain.ids import AppId
from waypost.http2 import Answer
from waypost.ports.clock import Clock

LARGEST: Final = 20
"""The most devices of a group."""
_PATH: Final = "/fcm/notification"

GROUP_CODES: dict[str, NotDone] = {
    said: NotDone(code, why, again=False)
    for said, code, why in (
        ("notification_key already exists", "EXISTS", "there is a group of this name"),
        ("notification_key not found", "NOT_FOUND", "there is no such group: it ends with its last device"),
        ("no valid registration ids", "NO_DEVICES", "none of the tokens is of a device with the app, or all are in it"),
        (
            "notification_key_name doesn't match the group name of the notification_key",
            "WRONG_NAME",
            "the group's token is of another name",
        ),
    )
}
"""What Google says of a change to a group that it refuses."""


class Group(Struct, frozen=True):
    """A device group: the token that stands for all of its devices."""

    token: str = msgspec.field(name="notification_key")


class _Refusal(Struct):
    error: str = ""


_groups = msgspec.json.Decoder(Group)
_refusals = msgspec.json.Decoder(_Refusal)


class DeviceGroups:
    """The device groups of one project, whose number (the sender id of the Firebase console) Google asks for."""

    def __init__(self, app: AppId, settings: FcmSettings, sender_id: str, *, clock: Clock) -> None:
        self._calls = GoogleCalls(app, settings, clock=clock)
        self._headers = (*FOR_ACCESS_TOKENS, (b"project_id", sender_id.encode()))

    async def start(self) -> None:
        """Read the service account. ConfigurationError as the sender's."""
        await self._calls.start()

    async def stop(self) -> None:
        """End what runs and close."""
        await self._calls.stop()

    async def create(self, name: str, tokens: Sequence[str]) -> Group | NotDone:
        """Make a group of *tokens*."""
        return await self._change({"operation": "create", "notification_key_name": name}, tokens)

    async def add(self, name: str, group: str, tokens: Sequence[str]) -> Group | NotDone:
        """Add *tokens* to the group whose token is *group*."""
        return await self._change(_change_of("add", name, group), tokens)

    async def remove(self, name: str, group: str, tokens: Sequence[str]) -> Group | NotDone:
        """Take *tokens* out of the group whose token is *group*; it ends with its last."""
        return await self._change(_change_of("remove", name, group), tokens)

    async def find(self, name: str) -> Group | NotDone:
        """Return the group of that name."""
        path = f"{_PATH}?notification_key_name={quote(name, safe='')}"
        return _group_in(await self._calls.call(GOOGLE, "GET", path, b"", self._headers))

    async def _change(self, change: dict[str, str], tokens: Sequence[str]) -> Group | NotDone:
        if len(tokens) > LARGEST:
            return NotDone("TOO_MANY", f"a group has {LARGEST} devices at most: use a topic", again=False)
        body = msgspec.json.encode(change | {"registration_ids": list(tokens)})
        return _group_in(await self._calls.call(GOOGLE, "POST", _PATH, body, self._headers))


def _change_of(operation: str, name: str, group: str) -> dict[str, str]:
    return {"operation": operation, "notification_key_name": name, "notification_key": group}


def _group_in(result: Called) -> Group | NotDone:
    if isinstance(result, Answer):
        group = read_json(_groups, result.body) if result.status == 200 else None
        if group is not None:
            return group
        said = read_json(_refusals, result.body) if result.status == 400 else None
        if said is not None and said.error in GROUP_CODES:
            return GROUP_CODES[said.error]
    return not_done(result)
