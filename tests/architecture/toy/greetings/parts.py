"""What the toy adds to a worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from litestar import Response, get, put
from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.address import Address
from waypost.domain.message import Message
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.domain.routing import Candidate, Question, Rule
from waypost.domain.settlement import Suppressed
from waypost.domain.time import Instant
from waypost.entrypoints.access import ADMINISTERS
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, ground_of
from waypost.entrypoints.rest.parameters import PathIdentity
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.ports.erasure import Erasure
from waypost.ports.journal import JournalRow
from waypost.runtime.roles import Role
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.transaction import OperationKind, Transaction

_GREET = "INSERT INTO greeting (app, user_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_HEARD = "INSERT INTO heard (place, times) VALUES (?, 1) ON CONFLICT (place) DO UPDATE SET times = heard.times + 1"
_ROUND = "INSERT INTO round_of (pid, times) VALUES (?, 1) ON CONFLICT (pid) DO UPDATE SET times = round_of.times + 1"


class Told(Struct, frozen=True):
    """All that the toy knows."""

    word: str
    greeted: list[str]
    heard: dict[int, int]
    """How often each row of the journal was heard, by its position."""
    journal: list[int]
    rounds: dict[int, int]
    """How often each process did the duty."""


def _run(transaction: Transaction, orders: Sequence[tuple[str, list[tuple[Any, ...]]]]) -> list[int]:
    for sql, rows in orders:
        transaction.connection.executemany(sql, rows)
    return [0] * len(orders)


_WRITING = OperationKind("greetings", _run, durable=True)


async def _write(ground: Ground, sql: str, rows: list[tuple[Any, ...]]) -> int:
    return await ground.store.database.commits.submit(_WRITING, (sql, rows))


@put(
    "/v1/users/{user_id:str}/greeting",
    tags=["Greetings"],
    operation_id="putGreeting",
    status_code=204,
    opt=speaks({204: None}, ADMINISTERS),
)
async def greet(request: Call, user_id: PathIdentity) -> None:
    """Greet a user."""
    ground = ground_of(request, "greetings")
    await _write(ground, _GREET, [(request.user.app, user_id, ground.clock.now())])


@get("/v1/greetings", tags=["Greetings"], operation_id="listGreetings", opt=speaks({200: Told}, ADMINISTERS))
async def told(request: Call) -> Response[bytes]:
    """Tell everything."""
    ground = ground_of(request, "greetings")

    async def rows(sql: str) -> list[tuple[Any, ...]]:
        read = ground.store.database.read
        found: list[tuple[Any, ...]] = await read(lambda connection: connection.execute(sql, ()).fetchall())
        return found

    greeted = [user for (user,) in await rows("SELECT user_id FROM greeting ORDER BY user_id")]
    heard = dict(await rows("SELECT place, times FROM heard"))
    journal = [place for (place,) in await rows("SELECT position FROM journal")]
    return answer(
        200, Told(ground.settings.word, greeted, heard, journal, dict(await rows("SELECT pid, times FROM round_of")))
    )


async def greeted(ground: Ground, notifications: Sequence[Notification]) -> list[bool]:
    """Read of the user of each whether it was greeted."""
    read = ground.store.database.read
    rows = await read(lambda connection: connection.execute("SELECT app, user_id FROM greeting", ()).fetchall())
    return [(each.app, each.user_id) in set(rows) for each in notifications]


def _never_to_strangers(question: Question, _: Candidate) -> Suppressed | None:
    return None if question.recipient.facts["greetings"] else Suppressed("never_greeted")


def address_kindly(message: Message, _: Address, recipient: Recipient) -> Message:
    """Begin the title with a word for who was greeted."""
    if not recipient.facts["greetings"]:
        return message
    return replace(message, content=replace(message.content, title=f"Dear friend: {message.content.title}"))


async def hear(ground: Ground, rows: Sequence[JournalRow]) -> None:
    """Count each row."""
    await _write(ground, _HEARD, [(row.position,) for row in rows])


async def go_round(ground: Ground) -> None:
    """Note which process does it."""
    await _write(ground, _ROUND, [(os.getpid(),)])


async def fail(ground: Ground, rows: Sequence[JournalRow]) -> None:
    """Be a reader that never gets on."""
    raise ValueError(rows)


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Forget that a user was greeted."""
    await _write(ground, "DELETE FROM greeting WHERE app = ? AND user_id = ?", [(erasure.app, erasure.user_id)])


async def drop(ground: Ground, now: Instant) -> int:
    """Delete what is old."""
    return await _write(ground, "DELETE FROM greeting WHERE at < ?", [(now - ground.settings.keep_ms,)])


PARTS = Parts(
    tables=(
        AddedTable(
            "greeting",
            "CREATE TABLE IF NOT EXISTS greeting"
            " (app TEXT, user_id TEXT, at {number} NOT NULL, PRIMARY KEY (app, user_id)){layout}",
        ),
        AddedTable(
            "heard", "CREATE TABLE IF NOT EXISTS heard (place {number} PRIMARY KEY, times {number} NOT NULL){layout}"
        ),
        AddedTable(
            "round_of",
            "CREATE TABLE IF NOT EXISTS round_of (pid {number} PRIMARY KEY, times {number} NOT NULL){layout}",
        ),
    ),
    routes=(greet, told),
    tags={"Greetings": "Of a toy."},
    readers={"broken-greetings": fail, "greetings": hear},
    duties=(FeatureDuty("greet", Role.SWEEP, 0.1, go_round),),
    rules=(Rule("strangers", _never_to_strangers),),
    facts=greeted,
    renders=address_kindly,
    erases=erase,
    drops=drop,
)
