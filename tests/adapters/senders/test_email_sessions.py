"""E-mail against servers that fail at every step of a session, which no good server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.adapters.senders.bench import SystemClock, fresh, outcome, outcomes
from tests.unit.adapters.deliveries import delivery
from waypost.channels.email.sender import EmailSender
from waypost.channels.email.settings import EmailSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import EMAIL
from waypost.domain.ids import AppId
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.telemetry.events import Event
from waypost.telemetry.sink import Silent

Answers = dict[str, str | list[str]]
"""The answer to each command; of a list, the next one each time."""
GOOD: Answers = {"": "220 hi", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go", ".": "250 ok"}
GOOD |= {"EHLO": "250 hi", "RSET": "250 ok", "QUIT": "221 bye"}
HANG_UP, SILENCE = "", "…"
"""The answers that are none: the connection is closed, or nothing comes."""


class ScriptedServer:
    """A server that answers each command as its script says, and remembers what it was asked."""

    def __init__(self, script: Callable[[int], Answers]) -> None:
        self._script = script
        self.asked: list[list[str]] = []
        """The commands of each connection."""
        self.silent = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Play the script to one client."""
        answers = GOOD | self._script(len(self.asked))
        asked: list[str] = []
        self.asked.append(asked)
        try:
            command = ""
            while (answer := _next(answers, command)) != HANG_UP:
                if answer == SILENCE:
                    self.silent.set()
                    await reader.read()
                    break
                writer.write(f"{answer}\r\n".encode())
                if command == "QUIT":
                    break
                in_data = command == "DATA" and answer.startswith("354")
                line = await reader.readuntil(b"\r\n.\r\n" if in_data else b"\r\n")
                command = "." if in_data else line.decode().split()[0]
                asked.append(command)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _next(answers: Answers, command: str) -> str:
    said = answers.get(command, "502 what?")
    return said if isinstance(said, str) else said.pop(0)


class Heard(Silent):
    """Telemetry that tells when a connection was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        if event is Event.CONNECTION_CLOSED:
            self.closed.set()


@asynccontextmanager
async def sending_to(
    script: Callable[[int], Answers], heard: Silent | None = None, **fields: Any
) -> AsyncIterator[tuple[EmailSender, ScriptedServer]]:
    """A sender with one connection, and the scripted server that it sends to."""
    scripted = ScriptedServer(script)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    given: dict[str, Any] = {"security": "none", "connections": 1} | fields
    settings = EmailSettings(host="127.0.0.1", port=port, sender="news@example.com", **given)
    demo = CredentialId.of(AppId("demo"), "email")
    sender = EmailSender(demo, settings, clock=SystemClock(), telemetry=heard or Silent())
    await sender.start()
    yield sender, scripted
    await sender.stop(1)
    server.close()


def to_ann(n: int = 0) -> Delivery:
    """To one mailbox."""
    return delivery(EMAIL, "ann@example.com", fresh(), n=n)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("script", "want", "code"),
    [
        ({"": HANG_UP}, Unreachable, "not_connected"),
        ({"": "421 too many"}, Throttled, "smtp_421"),
        ({"": "554 go away"}, Unreachable, "smtp_554"),
        ({"": "hello"}, Unreachable, "bad_answer"),
        ({"EHLO": HANG_UP}, Unreachable, "not_connected"),
        ({"MAIL": HANG_UP}, Unreachable, "connection_lost"),
        ({"MAIL": "550 5.7.1 not your address"}, CredentialRejected, "smtp_550_5.7.1"),
        ({"MAIL": "530 5.7.0 who are you"}, CredentialRejected, "smtp_530"),
        ({"MAIL": "552 5.3.4 too large"}, Refused, "smtp_552_5.3.4"),
        ({"MAIL": "451 4.3.0 later"}, Unreachable, "smtp_451"),
        ({"RCPT": HANG_UP}, Unreachable, "connection_lost"),
        ({"RCPT": "550 5.1.1 unknown"}, Gone, "smtp_550_5.1.1"),
        ({"RCPT": "550 no"}, Refused, "smtp_550"),
        ({"RCPT": "450 4.7.1 greylisted"}, Throttled, "smtp_450_4.7.1"),
        ({"RCPT": "550 4.1.1 which of them?"}, Refused, "smtp_550"),
        ({"DATA": HANG_UP}, Unreachable, "connection_lost"),
        ({"DATA": "451 4.3.0 later"}, Unreachable, "smtp_451"),
        ({"DATA": "what?"}, Unreachable, "bad_answer"),
        ({".": HANG_UP}, Unanswered, "connection_lost"),
        ({".": "what?"}, Unanswered, "bad_answer"),
        ({".": "354 go on"}, Unanswered, "bad_answer"),
        ({".": "552 5.2.2 full"}, Refused, "smtp_552_5.2.2"),
        ({".": "421 4.3.2 going down"}, Throttled, "smtp_421_4.3.2"),
    ],
)  # fmt: skip
async def test_each_step_that_fails_is_read_as_it_means(script: Answers, want: type[Outcome], code: str) -> None:
    """Before the last dot the server has provably nothing; after it, nobody knows."""
    async with sending_to(lambda _: script) as (sender, _):
        got = await outcome(sender, to_ann())
    assert isinstance(got, want)
    assert not isinstance(got, Taken)
    assert got.code == code


@pytest.mark.asyncio
async def test_a_server_that_does_not_encrypt_is_told_nothing() -> None:
    async with sending_to(lambda _: {}, security="starttls") as (sender, server):
        got = await outcome(sender, to_ann())
    assert got == Unreachable("no_starttls", "the server does not encrypt: STARTTLS is not offered")
    assert "MAIL" not in server.asked[0]


@pytest.mark.asyncio
async def test_a_kept_connection_that_the_server_tires_of_is_replaced() -> None:
    """421 to the first command of a message says nothing of the message: it goes by a new connection."""
    tired: Answers = {"MAIL": ["250 ok", "421 4.4.2 idle for too long"]}
    async with sending_to(lambda n: tired if n == 0 else {}) as (sender, server):
        assert isinstance(await outcome(sender, to_ann()), Taken)
        assert isinstance(await outcome(sender, to_ann(1)), Taken)
    message = ["MAIL", "RCPT", "DATA", "."]
    assert server.asked == [["EHLO", *message, "MAIL"], ["EHLO", *message, "QUIT"]]


@pytest.mark.asyncio
async def test_a_server_with_room_for_one_connection_gets_everything_by_that_one() -> None:
    one_alone: Answers = {"": "421 4.7.0 one is enough"}
    async with sending_to(lambda n: {} if n == 0 else one_alone, connections=4) as (sender, server):
        assert isinstance(await outcome(sender, to_ann()), Taken)
        got = await outcomes(sender, [to_ann(n) for n in range(1, 21)])
    assert {type(each) for each in got} == {Taken}
    assert len(server.asked) <= 4
    assert server.asked[0].count("MAIL") == 21


@pytest.mark.asyncio
async def test_after_a_refusal_the_session_is_cleared() -> None:
    async with sending_to(lambda _: {"RCPT": "550 5.1.1 unknown"}) as (sender, server):
        await outcomes(sender, [to_ann(), to_ann(1)])
    assert server.asked == [["EHLO", "MAIL", "RCPT", "RSET", "MAIL", "RCPT", "QUIT"]]


@pytest.mark.asyncio
async def test_a_connection_without_work_is_closed_and_the_next_message_opens_one() -> None:
    heard = Heard()
    async with sending_to(lambda _: {}, heard, idle_s=1) as (sender, server):
        assert isinstance(await outcome(sender, to_ann()), Taken)
        async with asyncio.timeout(30):
            await heard.closed.wait()
        assert server.asked[0][-1] == "QUIT"
        assert isinstance(await outcome(sender, to_ann(1)), Taken)
        assert len(server.asked) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(("step", "want"), [("RCPT", Unreachable), (".", Unanswered)])
async def test_what_is_under_way_at_the_end_is_reported_by_how_far_it_came(step: str, want: type[Outcome]) -> None:
    """The first message is with the server, unanswered; the others were never begun."""
    got: list[tuple[int, Outcome]] = []
    async with sending_to(lambda _: {step: SILENCE}) as (sender, server):
        sender.send([to_ann(n) for n in range(3)], lambda one, what: got.append((one.n, what)))
        await server.silent.wait()
        await sender.stop(0)
    said = dict(got)
    assert len(got) == 3
    assert type(said[0]) is want
    assert said[1] == said[2] == Unreachable("not_sent", "the sender was stopped")
