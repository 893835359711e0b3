"""The service ``waypost.v1.Notifications``, method by method."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import grpc

from waypost.domain.errors import Fault, InvalidRequest, NotFound, WaypostError
from waypost.domain.ids import parse_id
from waypost.domain.submission import Submission
from waypost.entrypoints.access import GRPC_ACCESS, reached
from waypost.entrypoints.grpc import answers
from waypost.entrypoints.grpc.api import GrpcApi
from waypost.entrypoints.grpc.calls import Answer, AuthenticatedCall, Calls
from waypost.entrypoints.grpc.refusals import status_of
from waypost.entrypoints.grpc.streaming import SubmissionStream
from waypost.entrypoints.grpc.submissions import submission
from waypost.entrypoints.submitting import BATCH_LIMIT, Submitted, placed, submit, with_key
from waypost.pipeline.intake import Caller
from waypost.v1 import notifications_pb2 as pb

KEY = "idempotency-key"


class Notifications:
    """The handlers of the calls; it knows the streams that are open."""

    def __init__(self, api: GrpcApi) -> None:
        self._api = api
        self._calls = Calls(api)
        self._streams: set[SubmissionStream] = set()

    def methods(self) -> dict[str, grpc.RpcMethodHandler[bytes, bytes]]:
        """List the methods for a server: each reads for itself, so that the caller is known before the message."""
        one, many = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Submit": one(self._route("Submit", self._submit)),
            "SubmitBatch": one(self._route("SubmitBatch", self._submit_batch)),
            "SubmitStream": many(self._route("SubmitStream", self._submit_stream)),
            "Get": one(self._route("Get", self._get, writes=False)),
        }
        assert methods.keys() == GRPC_ACCESS.keys(), "each method says who may call it"
        return methods

    def close_streams(self) -> None:
        """Let every stream acknowledge what it has read, and end."""
        for stream in self._streams:
            stream.close()

    def _route(self, name: str, answer: Answer, *, writes: bool = True) -> Callable[..., Awaitable[bytes | None]]:
        method = f"/{SERVICE}/{name}"

        async def answered(_messages: object, context: object) -> bytes | None:
            return await self._calls.run(method, answer, context, GRPC_ACCESS[name], writes=writes)

        return answered

    async def _submit(self, call: AuthenticatedCall) -> pb.Submitted:
        message = await call.only(pb.Submission, self._api.settings.message_timeout_s)
        wanted = submission(message)
        key = call.said(KEY)
        if key is not None:
            wanted = with_key(wanted, key, KEY)
        (answer,) = await self._accepted(call.caller, [wanted])
        if isinstance(answer, WaypostError):
            raise answer
        return answers.submitted(answer)

    async def _submit_batch(self, call: AuthenticatedCall) -> pb.SubmitBatchResponse:
        if call.said(KEY) is not None:
            raise InvalidRequest((Fault(KEY, "names one notification; give each item its own key"),))
        message = await call.only(pb.SubmitBatchRequest, self._api.settings.message_timeout_s)
        count = len(message.notifications)
        if not 1 <= count <= BATCH_LIMIT:
            raise InvalidRequest((Fault("notifications", f"holds {count}, from 1 to {BATCH_LIMIT}"),))
        await self._api.limits.count(call.caller, count - 1)
        results = await self._submit_each(call.caller, "notifications[{}]", message.notifications)
        taken = [each for each in results if isinstance(each, Submitted)]
        repeated = sum(each.deduplicated for each in taken)
        return pb.SubmitBatchResponse(
            accepted=len(taken) - repeated,
            deduplicated=repeated,
            refused=count - len(taken),
            results=[_result(each) for each in results],
        )

    async def _submit_stream(self, call: AuthenticatedCall) -> None:
        async def each(messages: Sequence[pb.Submission]) -> list[Submitted | WaypostError]:
            await self._api.limits.count(call.caller, len(messages))
            return await self._submit_each(call.caller, "", messages)

        at_once = self._api.limits.most(call.caller, BATCH_LIMIT)
        stream = SubmissionStream(call, each, self._api.settings.stream_in_flight, at_once)
        self._streams.add(stream)
        try:
            await stream.run()
        finally:
            self._streams.discard(stream)

    async def _get(self, call: AuthenticatedCall) -> pb.Notification:
        message = await call.only(pb.GetRequest, self._api.settings.message_timeout_s)
        try:
            wanted = parse_id(message.id)
        except ValueError:
            raise NotFound("no such notification") from None
        return answers.notification(reached(call.caller, await self._api.views.detail(call.caller.app, wanted)))

    async def _submit_each(
        self, caller: Caller, place: str, messages: Sequence[pb.Submission]
    ) -> list[Submitted | WaypostError]:
        """Submit messages and answer each; the faults of each are named below *place*, where ``{}`` is its number."""
        items = [_read(message, place.format(n)) for n, message in enumerate(messages)]
        readable = [item for item in items if isinstance(item, Submission)]
        given = iter(await self._accepted(caller, readable))
        merged = [next(given) if isinstance(item, Submission) else item for item in items]
        return [
            placed(each, place.format(n)) if isinstance(each, InvalidRequest) else each for n, each in enumerate(merged)
        ]

    async def _accepted(self, caller: Caller, wanted: Sequence[Submission]) -> list[Submitted | WaypostError]:
        """Submit, and finish what was begun, also for a caller who has gone."""
        return await asyncio.shield(submit(self._api.intake, self._api.views, caller, wanted))


SERVICE = pb.DESCRIPTOR.services_by_name["Notifications"].full_name


def _read(message: pb.Submission, place: str) -> Submission | InvalidRequest:
    try:
        return submission(message, place)
    except InvalidRequest as invalid:
        return invalid


def _result(answer: Submitted | WaypostError) -> pb.SubmitResult:
    if isinstance(answer, Submitted):
        return pb.SubmitResult(notification=answers.submitted(answer))
    return pb.SubmitResult(error=status_of(answer))
