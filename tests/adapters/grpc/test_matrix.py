"""Role by method, whole: the same page, the same rules, the same credentials as under REST."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from tests.adapters.grpc.service import Door, served, shown
from tests.adapters.rest.issuers import claims, rsa_key, service_token, services_issuer, token, user_token, users_issuer
from tests.adapters.rest.service import Service
from tests.architecture.trees import ROOT
from tests.shows import shows
from waypost.domain.scope import Scope
from waypost.entrypoints.access import GRPC_ACCESS
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio

OK, NOT_FOUND = grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND
DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED
SENDS = ("Submit", "SubmitBatch", "SubmitStream")

Metadata = Sequence[tuple[str, str]]

_OF_THE_CLIENT = "Internal error from Core"
"""It wrote as the stream was refused, and heard of its write alone."""


async def test_the_page_says_what_the_methods_declare() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| gRPC (`\w[^|]*) \| .* \| `([a-z:-]+)` \| (theirs|–) \|$", page, re.MULTILINE)
    rows = [(name, scope, users) for names, scope, users in found for name in re.findall(r"`(\w+)`", names)]
    declared = [(name, access.scope.value, "theirs" if access.users else "–") for name, access in GRPC_ACCESS.items()]
    assert rows == declared


def streamed(sequence: int) -> pb.SubmitStreamRequest:
    """A message of a stream."""
    return pb.SubmitStreamRequest(items=[pb.StreamItem(sequence=sequence, notification=shown())])


async def called(door: Door, method: str, own_id: str, metadata: Metadata) -> grpc.StatusCode:
    """How a call is answered that means user-1's notification of the app demo."""
    try:
        if method == "Submit":
            await door.stub.Submit(shown(), metadata=metadata)
        elif method == "SubmitBatch":
            await door.stub.SubmitBatch(pb.SubmitBatchRequest(notifications=[shown()]), metadata=metadata)
        elif method == "SubmitStream":
            async for _ in door.stub.SubmitStream(iter([streamed(1)]), metadata=metadata):
                pass
        else:
            await door.stub.Get(pb.GetRequest(id=own_id), metadata=metadata)
    except grpc.aio.AioRpcError as refused:
        if refused.details() == _OF_THE_CLIENT:
            return await called(door, method, own_id, metadata)
        return refused.code()
    return OK


def bearer(text: str) -> Metadata:
    """As it is meant to be presented."""
    return [("authorization", f"Bearer {text}")]


@shows("S3-43", "S3-44")
async def test_each_role_is_answered_as_the_page_says(tmp_path: Path) -> None:
    service = Service(issuers=[users_issuer(tmp_path), services_issuer()])
    await service.add_keys()
    async with served(service=service) as door:
        roles: dict[str, tuple[Metadata, grpc.StatusCode, grpc.StatusCode]] = {
            "nobody": ([], UNKNOWN, UNKNOWN),
            "a forged token": (bearer(token(claims(), rsa_key(n=1))), UNKNOWN, UNKNOWN),
            "two credentials": ([*door.key, ("x-api-key", service.made.text)], UNKNOWN, UNKNOWN),
            **{
                f"a service with {scope}": (
                    bearer(service_token(scope)),
                    OK if scope is Scope.SEND_ANY_USER else DENIED,
                    OK if scope is Scope.READ else DENIED,
                )
                for scope in Scope
            },
            "a key": (door.key, OK, OK),
            "a key of another app": (bearer(service.others.text), OK, NOT_FOUND),
            "the user": (bearer(user_token("user-1", *Scope)), DENIED, OK),
            "another user": (bearer(user_token("user-2", *Scope)), DENIED, NOT_FOUND),
        }
        made = await door.stub.Submit(shown(), metadata=door.key)
        for name, (metadata, sends, reads) in roles.items():
            found = [await called(door, method, made.id, metadata) for method in (*SENDS, "Get")]
            assert found == [sends, sends, sends, reads], name


async def test_a_stream_ends_when_its_key_does() -> None:
    """Who holds a stream open gains nothing by it; what was accepted before has been acknowledged."""
    async with served() as door:
        call = door.stub.SubmitStream(metadata=door.key)
        await call.write(streamed(1))
        assert (await call.read()).acknowledgements[0].sequence == 1
        await door.service.keys.revoke(door.service.made.prefix, door.service.clock.now())
        door.service.clock.advance(2_000)
        await call.write(streamed(2))
        assert await call.code() is UNKNOWN
        assert len(door.service.store.rows) == 1
