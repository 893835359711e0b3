"""The doors, each as something that takes submissions as JSON and tells what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
import httpx
import msgspec
from google.protobuf import struct_pb2, timestamp_pb2
from msgspec import Struct

from tests.adapters.grpc.service import Door as GrpcDoor
from tests.adapters.grpc.service import reason, served, status_in, violations
from tests.hostile.behind import Behind, behind
from tests.hostile.corpus import Case
from waypost.domain.ids import NotificationId, parse_id
from waypost.v1 import notifications_pb2 as pb

AT_ONCE: Final = 25
SUBMIT: Final = "/waypost.v1.Notifications/Submit"
JSON_TYPE: Final = {"content-type": "application/json"}


class Took(Struct, frozen=True):
    """Accepted, or said before."""

    id: NotificationId


class Told(Struct, frozen=True):
    """Refused."""

    code: str
    fields: tuple[str, ...] = ()


class NoForm(Struct, frozen=True):
    """This cannot be said at this door."""


Answer = Took | Told | NoForm


class Door(Protocol):
    """A way in."""

    behind: Behind

    async def offer(self, cases: Sequence[Case]) -> list[Answer]:
        """Bring each, and give an answer to each."""
        ...


class OverRest:
    """One request a submission."""

    def __init__(self, behind: Behind, path: str, shape: Shape) -> None:
        self.behind = behind
        self._path = path
        self._shape = shape

    async def offer(self, cases: Sequence[Case]) -> list[Answer]:
        """See Door."""
        async with self.behind.client() as client:
            found: list[Answer] = []
            for start in range(0, len(cases), AT_ONCE):
                some = cases[start : start + AT_ONCE]
                found += await asyncio.gather(*(self._ask(client, case) for case in some))
            return found

    async def _ask(self, client: httpx.AsyncClient, case: Case) -> Answer:
        shape = self._shape
        body = shape.of(case.body)
        if body is None:
            return NoForm()
        answer = await client.post(self._path, content=body, headers=JSON_TYPE)
        said = shape.inside(answer.json())
        if "code" in said:
            fields = tuple(shape.own(each["path"]) for each in said.get("faults", ()))
            return Told(said["code"], fields or ("",))
        assert answer.status_code in (200, 201, 202), answer.text
        return Took(parse_id(said[shape.id]))


class Shape(Struct, frozen=True):
    """How a submission is written on a path, and where its answer has what."""

    id: str = "id"
    words: dict[str, str] | None = None
    """The names of the fields there are, by ours; None is all of them."""
    within: Callable[[bytes], bytes] = lambda body: body
    inside: Callable[[dict], dict] = lambda said: said
    place: str = ""

    def of(self, body: bytes) -> bytes | None:
        """*body* as it is written here; None where a field has no place."""
        words = self.words
        if words is not None:
            said = said_in(body)
            if said is not None:
                if not said.keys() <= words.keys():
                    return None
                for ours, theirs in words.items():
                    body = body if ours == theirs else body.replace(f'"{ours}"'.encode(), f'"{theirs}"'.encode(), 1)
        return self.within(body)

    def own(self, path: str) -> str:
        """Our word for a field at fault."""
        path = path.removeprefix(self.place).removeprefix(".")
        names = {theirs: ours for ours, theirs in (self.words or {}).items()}
        return names.get(path, path)


def said_in(body: bytes) -> dict[str, Any] | None:
    """What *body* says, where it is an object."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _of_batch(said: dict) -> dict:
    """The answer to the one item of a batch."""
    if "results" not in said:
        return said
    (result,) = said["results"]
    return dict(result.get("notification") or result["error"])


def _of_envelope(said: dict) -> dict:
    return dict(said["data"] if said["success"] else said["error"])


SHAPES: Final[dict[str, tuple[str, Shape]]] = {
    "REST": ("/v1/notifications", Shape()),
    "REST, batch": (
        "/v1/notifications/batch",
        Shape(within=lambda body: b'{"notifications": [' + body + b"]}", inside=_of_batch, place="notifications[0]"),
    ),
    "/v1/notify": (
        "/v1/notify",
        Shape(
            id="notification_id",
            words={"user_id": "user_id", "title": "title", "body": "body", "data": "data", "kind": "notif_type"}
            | {"urgency": "urgency", "ttl": "ttl_seconds", "is_admin": "is_admin", "User_Id": "User_Id"},
        ),
    ),
    "/api/notifications": (
        "/api/notifications",
        Shape(
            inside=_of_envelope,
            words={"user_id": "user_id", "title": "title", "body": "body", "data": "data", "type": "type"}
            | {"scheduled_at": "scheduled_for", "dedup_window": "dedup_window"},
        ),
    ),
}


class OverGrpc:
    """One call a submission, or all of them in one stream."""

    def __init__(self, door: GrpcDoor, behind: Behind, *, streams: bool) -> None:
        self.behind = behind
        self._door = door
        self._streams = streams

    async def offer(self, cases: Sequence[Case]) -> list[Answer]:
        """See Door."""
        made = [message_of(case.body) for case in cases]
        if not self._streams:
            return [NoForm() if each is None else await self._ask(each) for each in made]
        asked = {n: each for n, each in enumerate(made) if isinstance(each, pb.Submission)}
        stream = self._door.stub.SubmitStream(metadata=self._door.key)
        for n, each in asked.items():
            await stream.write(pb.SubmitStreamRequest(items=[pb.StreamItem(sequence=n, notification=each)]))
        await stream.done_writing()
        found = {each.sequence: _acknowledged(each) async for answer in stream for each in answer.acknowledgements}
        assert found.keys() == asked.keys()
        return [found.get(n, NoForm()) for n in range(len(cases))]

    async def _ask(self, message: pb.Submission | bytes) -> Answer:
        raw = message if isinstance(message, bytes) else message.SerializeToString()
        try:
            answer = await self._door.channel.unary_unary(SUBMIT)(raw, metadata=self._door.key)
        except grpc.aio.AioRpcError as error:
            return _refused(status_in(error))
        return Took(parse_id(pb.Submitted.FromString(answer).id))


def _refused(status: Any) -> Told:
    code = reason(status)
    has_fields = code in ("invalid_request", "invalid_json", "too_large")
    return Told(code, tuple(field for field, _ in violations(status)) if has_fields else ())


def _acknowledged(each: pb.Acknowledgement) -> Answer:
    return _refused(each.error) if each.HasField("error") else Took(parse_id(each.notification.id))


def message_of(body: bytes) -> pb.Submission | bytes | None:
    """The message that says what *body* says; where that is nothing, the bytes as they are; None where none can."""
    said = said_in(body)
    if said is None:
        return body
    fields: dict[str, Any] = {}
    try:
        for name, value in said.items():
            fields[name] = _MESSAGES.get(name, _same)(value)
        return pb.Submission(**fields)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None


def _same(value: Any) -> Any:
    if isinstance(value, float):
        raise TypeError("a message would make it whole")
    return value


def _struct(value: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(value)
    return made


def _stamp(value: str) -> timestamp_pb2.Timestamp:
    stamp = timestamp_pb2.Timestamp()
    stamp.FromJsonString(value)
    return stamp


def _list(value: list[Any]) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


_MESSAGES: dict[str, Callable[[Any], Any]] = {
    "data": _struct,
    "overrides": lambda value: {channel: _struct(fields) for channel, fields in value.items()},
    "actions": lambda value: [pb.Action(**each) for each in _list(value)],
    "device_ids": _list,
    "to": lambda value: pb.Broadcast(**value),
    "scheduled_at": _stamp,
    "kind": lambda value: pb.Kind.Value(f"KIND_{value.upper()}"),
    "urgency": lambda value: pb.Urgency.Value(f"URGENCY_{value.upper()}"),
    "guarantee": lambda value: pb.Guarantee.Value(f"GUARANTEE_{value.upper()}"),
    "push_type": lambda value: pb.PushType.Value(f"PUSH_TYPE_{value.upper()}"),
}


@asynccontextmanager
async def opened(name: str, folder: Path) -> AsyncIterator[Door]:
    """The door of that name, of those that callers call."""
    async with behind(folder) as service:
        if name in SHAPES:
            yield OverRest(service, *SHAPES[name])
            return
        async with served(service=service) as door:
            yield OverGrpc(door, service, streams=name == "gRPC, stream")


CALLED: Final = (*SHAPES, "gRPC", "gRPC, stream")
