"""The reception between the wire and a gateway: it applies the fault script, has requests judged, keeps the record."""

import asyncio
import email.utils
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab.exchange import ClientConnection, Gateway, GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.faults import (
    AnswerFault,
    BlackHole,
    Do,
    ErrorBudget,
    Faults,
    Goaway,
    PaceFault,
    Rst,
    SettingsChange,
    SlowReader,
)
from waypost.lab.pace import Queue
from waypost.lab.records import Records


class Drop(msgspec.Struct, frozen=True):
    """The order to close the TCP connection without an answer."""


Instead = BlackHole | Drop | Goaway | Rst
"""The events that can come in place of an answer."""


class Turn:
    """A request in the queue of a gateway; *then* says what the wire does when its turn has come."""

    then: "Callable[[Reply], None]"


class Reply(msgspec.Struct, frozen=True):
    """The order for one request: an answer after *delay_s*, or *instead* of it something else."""

    answer: GatewayAnswer | None = None
    instead: Instead | None = None
    delay_s: float = 0.0
    first: tuple[SettingsChange | SlowReader, ...] = ()
    """The change of the connection before the answer."""
    ends: bool = False
    """Whether the connection is closed behind the answer."""
    turn: Turn | None = None
    """Nothing yet: what to do comes by this, unless the request is given up before."""


class Reception:
    """The receiver of one gateway's requests, whatever HTTP version they came by."""

    def __init__(
        self,
        gateway: Gateway,
        faults: Faults,
        records: Records,
        clock: Callable[[], float],
        queue: Queue,
        *,
        needs_length: bool = False,
    ) -> None:
        """Create the receiver; *queue* belongs to the whole of *gateway*, of however many ports."""
        self.gateway, self.faults, self.records, self.clock, self._queue = gateway, faults, records, clock, queue
        self._needs_length = needs_length

    def connect(self, protocol: str, *, scheme: str = "https", certificate: bytes | None = None) -> ClientConnection:
        """Register a connection whose TLS handshake is done."""
        return self.records.open_connection(
            self.gateway.name, protocol, self.clock(), scheme=scheme, certificate=certificate
        )

    def disconnect(self, connection: ClientConnection) -> None:
        """Note that a connection has ended."""
        connection.closed_at = self.clock()

    def receive(self, request: Request, *, scripted: bool = True) -> Reply:
        """Decide what becomes of *request*; with *scripted* off the fault script is not consulted."""
        request.connection.requests += 1
        if self._needs_length and request.body and "content-length" not in request.headers:
            answer = GatewayAnswer(411)
            self._record(request, Verdict(answer=answer, reason="length_required"))
            return Reply(answer)
        if not scripted or not self.faults.meets_any(self.gateway.name):
            return Reply(self._judge(request))
        token = self.gateway.token_of(request)
        actions = self.faults.choose(self.gateway.name, token)
        first = tuple(change for action in actions if (change := action.settings or action.slow_reader))
        pace = next((action.pace for action in actions if action.pace), None)
        reply = self._act(request, token, actions) if pace is None else self._enqueue(request, token, actions, pace)
        return msgspec.structs.replace(reply, first=first)

    def _act(self, request: Request, token: str, actions: list[Do], verdict: Verdict | None = None) -> Reply:
        """Carry the script out; a request that it leaves to the gateway may have its *verdict* already."""
        reply = self._final(request, token, actions[-1]) if actions else None
        reply = reply or Reply(self._judge(request, verdict))
        delay_s = sum(action.latency_ms or 0 for action in actions) / 1000
        budget = next((action.error_budget for action in actions if action.error_budget), None)
        ends = budget is not None and reply.answer is not None and _charge(request.connection, reply.answer, budget)
        return msgspec.structs.replace(reply, delay_s=delay_s, ends=ends)

    def _enqueue(self, request: Request, token: str, actions: list[Do], pace: PaceFault) -> Reply:
        """Queue a request for its turn, if it is one to wait: a front end refuses what is wrong at once."""
        verdict = None if actions[-1].decides else self.gateway.judge(request)
        if verdict is not None and verdict.answer.status >= 400:
            return self._act(request, token, actions, verdict)
        turn = Turn()

        def take() -> bool:
            awaited = request.is_awaited
            reply = self._act(request, token, actions, verdict)
            if awaited and reply.delay_s:
                prompt = msgspec.structs.replace(reply, delay_s=0.0)
                asyncio.get_running_loop().call_later(reply.delay_s, turn.then, prompt)
            elif awaited:
                turn.then(reply)
            return awaited

        if self._queue.offer(take):
            return Reply(turn=turn)
        reason = "UNAVAILABLE" if self.gateway.name == "fcm" else "ServiceUnavailable"
        return Reply(self._scripted_answer(request, token, pace.when_full or AnswerFault(503, reason)))

    def swallow(self, request: Request, hole: BlackHole) -> None:
        """Ignore *request*, which came on a connection where nothing is answered any more."""
        request.connection.requests += 1
        self._unanswered(request, accept=hole.accept)

    def _final(self, request: Request, token: str, action: Do) -> Reply | None:
        """Carry out a rule that decides; None when it leaves the request to the gateway."""
        if action.answer:
            return Reply(self._scripted_answer(request, token, action.answer))
        if action.gone:
            at_ms = int(self.clock() * 1000) if action.gone.at_ms is None else action.gone.at_ms
            answer = self.gateway.refuse(Refusal(action.gone.status, action.gone.reason), request, gone_at_ms=at_ms)
            self._record(request, Verdict(answer=answer, reason=action.gone.reason, token=token))
            return Reply(answer)
        if action.goaway:
            return Reply(instead=action.goaway)
        if action.drop or action.accept_then_drop:
            self._unanswered(request, accept=action.accept_then_drop is True)
            return Reply(instead=Drop())
        if instead := action.rst or action.black_hole:
            self._unanswered(request, accept=instead.accept)
            return Reply(instead=instead)
        return None

    def _scripted_answer(self, request: Request, token: str, fault: AnswerFault) -> GatewayAnswer:
        answer = self.gateway.refuse(Refusal(fault.status, fault.reason), request)
        headers = dict(answer.headers)
        body = answer.body
        if fault.body is not None:
            body = fault.body.encode()
            headers["content-type"] = "text/html; charset=UTF-8" if body[:1] == b"<" else "text/plain; charset=UTF-8"
        if fault.retry_after is not None:
            headers["retry-after"] = str(fault.retry_after)
        if fault.retry_after_date_s is not None:
            headers["retry-after"] = email.utils.formatdate(self.clock() + fault.retry_after_date_s, usegmt=True)
        headers.update((name.lower(), value) for name, value in fault.headers.items())
        taken = self.gateway.judge(request) if fault.accept else None
        if fault.fields:
            body = _overlaid(taken.answer.body if taken is not None and taken.accepted else body, fault.fields)
        answer = GatewayAnswer(fault.status, tuple(headers.items()), body)
        verdict = taken or Verdict(answer=answer, reason=fault.reason or f"scripted {fault.status}", token=token)
        self._record(request, verdict, status=fault.status)
        return answer

    def _judge(self, request: Request, verdict: Verdict | None = None) -> GatewayAnswer:
        verdict = verdict or self.gateway.judge(request)
        self._record(request, verdict)
        return verdict.answer

    def _unanswered(self, request: Request, *, accept: bool) -> None:
        if accept:
            self._record(request, self.gateway.judge(request), status=0)

    def _record(self, request: Request, verdict: Verdict, status: int | None = None) -> None:
        if verdict.keep:
            answered = verdict.answer.status if status is None else status
            self.records.add(request, verdict, answered if request.is_awaited else 0, self.clock())


def _overlaid(body: bytes, fields: dict[str, Any]) -> bytes:
    """Lay *fields* over *body*, which is a JSON object or nothing."""
    return msgspec.json.encode(_merged(msgspec.json.decode(body or b"{}"), fields))


def _merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {name: _merged(below.get(name), value) for name, value in above.items()}


def _charge(connection: ClientConnection, answer: GatewayAnswer, budget: ErrorBudget) -> bool:
    """Count *answer* against the connection's budget; true when the connection has used it up."""
    if answer.status < 400:
        if budget.lower_after is not None and connection.errors >= budget.lower_after:
            connection.limit_streams(budget.lift_to)
        connection.errors = 0
        return False
    if answer.status == 410 or answer.status >= 500:
        return False
    connection.errors += budget.bad_device_token_counts if b"BadDeviceToken" in answer.body else 1
    if budget.lower_after is not None and connection.errors >= budget.lower_after:
        connection.limit_streams(budget.lower_to)
    return budget.drop_after is not None and connection.errors >= budget.drop_after
