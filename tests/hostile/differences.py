"""Where a door answers otherwise than the list of cases says, each with its reason (its page has it, too)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.hostile.corpus import INVALID, JSON, Case, Kept, Must, Refused


def otherwise(door: str, cases: Sequence[Case]) -> dict[str, Must]:
    """By the name of the case."""
    return dict(_DIFFERENCES.get(door, _none)(cases))


Differences = Iterator[tuple[str, Must]]


def _none(cases: Sequence[Case]) -> Differences:
    yield from ()


def _of_batch(cases: Sequence[Case]) -> Differences:
    """What is no JSON by itself may leave the batch around it JSON, or take it along."""
    yield "nothing", Refused(INVALID, "notifications")
    yield "white space", Refused(INVALID, "notifications")
    yield "unclosed lists", Refused(JSON)


def _of_api(cases: Sequence[Case]) -> Differences:
    """It cleans titles and bodies, and its titles end at 255 characters."""
    yield "title: longest", Refused(INVALID, "title")
    for case in cases:
        if case.text is not None and isinstance(case.must, Kept):
            seen = {"title": case.text.titled, "body": case.text.shown}
            if seen["title"] != case.text.said or seen["body"] != case.text.said:
                yield case.name, Kept(case.must.fields | seen)


def _of_grpc(cases: Sequence[Case]) -> Differences:
    """Bytes that are no JSON are no message either; a number in a message is a double."""
    yield "nothing", Refused(INVALID, "user_id")
    yield "data: wider than 64 bits", Kept({"data": {"a": float(1 << 64)}})
    for case in cases:
        is_bytes = isinstance(case.must, Refused) and case.must.code == JSON and case.body
        if is_bytes or case.name == "a number out of range":
            yield case.name, Refused(INVALID)


def _of_fields(cases: Sequence[Case]) -> Differences:
    """A job's text goes into PostgreSQL where the drop-in takes it, which has no NUL; the user has another name."""
    yield "shown: NUL", Refused(INVALID, "title")
    yield "user_id: NUL", Refused(INVALID, "userId")
    yield "user_id: empty", Refused(INVALID, "userId")


_DIFFERENCES = {
    "Redis, fields": _of_fields,
    "REST, batch": _of_batch,
    "/api/notifications": _of_api,
    "gRPC": _of_grpc,
    "gRPC, stream": _of_grpc,
}
