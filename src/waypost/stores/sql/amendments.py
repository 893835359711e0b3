"""The decision on an amendment, by the process that owns the shard, since it alone knows what is leased.

For a shard of its own a process decides at once; for one without an owner it takes the lock, decides and lets go; the
owner of any other is told, decides, and tells the answer. Of what is final nothing is leased: whoever is asked decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from waypost.domain.amendment import (
    Amended,
    Amendment,
    Confirm,
    Recover,
    Reschedule,
    SingleAmendment,
    Supersede,
    TooLate,
    Withdraw,
    gathered,
    unknown_to,
)
from waypost.domain.errors import Unavailable
from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.ports.peers import Peers
from waypost.stores.sql.amend import AMEND, CLOSE, Answers, TakeBack, older, order_of
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.engine import Locks, owned_units
from waypost.stores.sql.lease_table import LeaseTable
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.units import unit_of

_ASKED = "amend"
_ANSWERED = "amended"
_FIND = "SELECT id, shard, app, status, lane FROM notification WHERE id IN ({keys})"

_PER_QUESTION = 20
"""The most amendments a message: in base64 they take two thirds of the largest there is (NotifyPeers)."""

_ROUNDS = 3
"""The number of times that the owners are looked for where shards move meanwhile."""

_Wanted = Mapping[int, SingleAmendment]
"""What is to be done, by number: one notification may be amended several times."""
_Given = dict[int, Amended]


class _Place(Struct, frozen=True):
    """The place of a notification."""

    unit: int
    """The unit; of the log's, the one that its user would be in: by that its waits are leased."""
    is_final: bool

    @property
    def owner(self) -> int | None:
        """The unit whose owner decides; None where whoever is asked does."""
        return None if self.is_final else self.unit


_Places = Mapping[int, _Place]


class _Question(Struct, frozen=True, array_like=True):
    number: bytes
    wanted: tuple[tuple[int, SingleAmendment], ...]


class _Answer(Struct, frozen=True, array_like=True):
    number: bytes
    answers: tuple[tuple[int, Amended], ...]


class _Asked(Struct):
    """A question to the other processes."""

    missing: set[int]
    answers: _Given
    complete: asyncio.Future[None]


async def spread(database: Database, amendments: Sequence[Amendment]) -> list[list[SingleAmendment]]:
    """List the withdrawals and confirmations that each of *amendments* stands for."""
    orders = [each for each in amendments if isinstance(each, Supersede)]

    def query(connection: Connection) -> list[list[NotificationId]]:
        return [older(connection, each) for each in orders]

    found = iter(await database.read(query) if orders else ())
    return [
        [each.withdraws(one) for one in next(found)] if isinstance(each, Supersede) else [each] for each in amendments
    ]


class Amendments:
    """The amendments of a process: it decides what is its own to decide and asks for the rest."""

    def __init__(
        self,
        database: Database,
        shards: Locks,
        peers: Peers | None,
        lease_table: LeaseTable,
        look_again: Callable[[], None],
    ) -> None:
        self._database = database
        self._shards = shards
        self._peers = peers
        self._lease_table = lease_table
        self._look_again = look_again
        self._asked: dict[bytes, _Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._deciding: Counter[int] = Counter()
        """The number of decisions that are being written, by unit."""
        if peers is not None:
            peers.on(_ASKED, self._on_question)
            peers.on(_ANSWERED, self._on_answer)

    async def amend(self, amendments: Sequence[Amendment]) -> list[Amended]:
        """Answer each item; Unavailable where the owner did not say, or changed every time: ask again."""
        parts = await spread(self._database, amendments)
        wanted: _Wanted = dict(enumerate(each for part in parts for each in part))
        answers: _Given = {}
        for _ in range(_ROUNDS):
            left = {n: each for n, each in wanted.items() if n not in answers}
            places = await self._places_of(left)
            answers |= {n: unknown_to(each) for n, each in left.items() if n not in places}
            answers |= await self._answers_for(left, places)
            if len(answers) == len(wanted):
                return gathered(parts, (answers[n] for n in wanted))
        raise Unavailable("the notification is moving from one worker to another")

    async def _answers_for(self, wanted: _Wanted, places: _Places) -> _Given:
        """Decide at once what is this process's or nobody's, then ask for the rest; not what changed owners meanwhile.

        Between looking at what is owned and the order there is no pause, and from the order on the shards stay.
        """
        asked_for = {place.unit for place in places.values() if not place.is_final}
        borrowed = await self._shards.borrow(asked_for - owned_units(self._shards))
        try:
            decidable: frozenset[int | None] = owned_units(self._shards) | borrowed.units | {None}
            here = {n: place for n, place in places.items() if place.owner in decidable}
            answers = await self._decide(wanted, here)
        finally:
            await borrowed.give_back()
        elsewhere = {n: wanted[n] for n, place in places.items() if place.owner not in decidable}
        return answers | (await self._ask(elsewhere) if elsewhere else {})

    async def _places_of(self, wanted: _Wanted) -> _Places:
        """Find the places of those that their app has: what is another's is not kept from being leased."""
        ids = list(dict.fromkeys(each.id for each in wanted.values()))
        rows = await self._database.read_to_lease(lambda connection: list(select_in(connection, _FIND, ids)))
        found: dict[tuple[NotificationId, AppId], _Place] = {
            (row[0], row[2]): _Place(unit_of(row[4], row[1] % SHARDS), row[3] != "pending") for row in rows
        }
        return {n: found[key] for n, each in wanted.items() if (key := (each.id, each.app)) in found}

    def busy_units(self) -> set[int]:
        """Return the units of which an amendment is being written."""
        return set(self._deciding)

    async def _decide(self, wanted: _Wanted, places: _Places) -> _Given:
        """Write what is decided; until then nothing of it is leased, and its shards stay.

        No answer for what the transaction did not find: another process's by now, or cleared away.
        """
        if not places:
            return {}
        deciding = {n: wanted[n] for n in places}
        orders = [order_of(each, self._lease_table.held_of(each.id)) for each in deciding.values()]
        future = self._database.commits.submit(AMEND, orders, len(orders))
        forgotten = [each for each in deciding.values() if self._lease_table.block(each.id)]
        units = Counter(place.unit for place in places.values())
        self._deciding.update(units)
        future.add_done_callback(partial(self._decided, list(deciding.values()), units))
        if any(isinstance(each, Confirm | Recover | Reschedule) for each in forgotten):
            future.add_done_callback(lambda _: self._look_again())
        decided = zip(deciding, await asyncio.shield(future), strict=True)
        return {n: answer for n, answer in decided if answer is not None}

    def _decided(
        self, deciding: Sequence[SingleAmendment], units: Counter[int], future: asyncio.Future[Answers]
    ) -> None:
        self._deciding -= units
        for each in deciding:
            self._lease_table.unblock(each.id)
        if future.cancelled() or future.exception() is not None:
            self._look_again()
            return
        left: list[TakeBack] = []
        for each, answer in zip(deciding, future.result(), strict=True):
            is_taken_back = isinstance(each, Withdraw) and isinstance(answer, TooLate)
            if is_taken_back and not self._lease_table.note_withdrawn(each.id):
                self._lease_table.forget_ready(each.id)  # given back, or settled for later, meanwhile
                left.append(TakeBack(each.app, each.id, None))
        if left:
            with contextlib.suppress(Unavailable):  # the store is closing: whoever releases it closes it
                closing = self._database.commits.submit(CLOSE, left, len(left))
                closing.add_done_callback(lambda done: done.cancelled() or done.exception())  # as above

    async def _ask(self, wanted: _Wanted) -> _Given:
        """Ask the owners of any number of notifications, a message's worth at a time."""
        answers: _Given = {}
        numbered = list(wanted.items())
        for at in range(0, len(numbered), _PER_QUESTION):
            question = _Question(os.urandom(8), tuple(numbered[at : at + _PER_QUESTION]))
            answers |= await self._ask_once(question)
        return answers

    async def _ask_once(self, question: _Question) -> _Given:
        if self._peers is None:
            raise Unavailable("another process owns the notification")
        asked = _Asked({n for n, _ in question.wanted}, {}, asyncio.get_running_loop().create_future())
        self._asked[question.number] = asked
        try:
            self._peers.tell(_ASKED, msgspec.msgpack.encode(question))
            async with asyncio.timeout(self._database.settings.withdraw_timeout_s):
                await asked.complete
        except TimeoutError:
            raise Unavailable("the worker that owns the notification did not answer") from None
        finally:
            del self._asked[question.number]
        return asked.answers

    def _on_question(self, body: bytes) -> None:
        question = msgspec.msgpack.decode(body, type=_Question)
        task = asyncio.get_running_loop().create_task(self._reply(question))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, question: _Question) -> None:
        try:
            wanted = dict(question.wanted)
            places = await self._places_of(wanted)
            owned = owned_units(self._shards)
            mine = {n: place for n, place in places.items() if place.unit in owned}
            if not mine:
                return
            answers = await self._decide(wanted, mine)
        except Unavailable:
            return  # silence: the asker refuses its request, which is to be repeated
        if self._peers is not None:
            answer = _Answer(question.number, tuple(answers.items()))
            self._peers.tell(_ANSWERED, msgspec.msgpack.encode(answer))

    def _on_answer(self, body: bytes) -> None:
        answer = msgspec.msgpack.decode(body, type=_Answer)
        asked = self._asked.get(answer.number)
        if asked is None:
            return
        asked.answers.update(answer.answers)
        asked.missing -= asked.answers.keys()
        if not asked.missing and not asked.complete.done():
            asked.complete.set_result(None)
