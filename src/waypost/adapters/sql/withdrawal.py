"""Who decides a withdrawal: the process that owns the shard, since it alone knows what is leased.

For a shard of its own a process decides at once; for one without an owner it takes the lock, decides and lets go; the
owner of any other is told, decides, and tells the answer.
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

from waypost.adapters.sql.database import Database
from waypost.adapters.sql.engine import Locks
from waypost.adapters.sql.holdings import Holdings
from waypost.adapters.sql.rows import select_in
from waypost.adapters.sql.withdraw import CLOSE, WITHDRAW, TakeBack
from waypost.domain.errors import Unavailable
from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.domain.progress import NotOpen, TooLate, Withdrawal
from waypost.ports.peers import Peers

_ASKED = "withdraw"
_ANSWERED = "withdrawn"
_FIND = "SELECT id, shard, app FROM notification WHERE id IN ({keys})"

_IDS_PER_QUESTION = 50
"""Answers to so many, in base64, take two thirds of the largest message there is (NotifyPeers)."""

_ROUNDS = 3
"""How often the owners are looked for where shards move meanwhile."""

_Answers = dict[NotificationId, Withdrawal]


class _Question(Struct, frozen=True, array_like=True):
    number: bytes
    app: AppId
    ids: tuple[NotificationId, ...]
    why: str


class _Answer(Struct, frozen=True, array_like=True):
    number: bytes
    answers: tuple[tuple[NotificationId, Withdrawal], ...]


class _Asked(Struct):
    """A question to the other processes."""

    missing: set[NotificationId]
    answers: _Answers
    complete: asyncio.Future[None]


class Withdrawals:
    """Decides what is this process's to decide and asks for the rest."""

    def __init__(
        self,
        database: Database,
        shards: Locks,
        peers: Peers | None,
        holdings: Holdings,
        look_again: Callable[[], None],
    ) -> None:
        self._database = database
        self._shards = shards
        self._peers = peers
        self._holdings = holdings
        self._look_again = look_again
        self._asked: dict[bytes, _Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._deciding: Counter[int] = Counter()
        """How many decisions are being written, by shard."""
        if peers is not None:
            peers.on(_ASKED, self._on_question)
            peers.on(_ANSWERED, self._on_answer)

    async def withdraw(self, app: AppId, ids: Sequence[NotificationId], why: str) -> list[Withdrawal]:
        """One answer per id; Unavailable where the owner did not say, or changed every time: ask again."""
        answers: _Answers = {}
        for _ in range(_ROUNDS):
            left = [one for one in ids if one not in answers]
            shard_of = await self._shards_of(app, left)
            answers |= {one: NotOpen(None) for one in left if one not in shard_of}
            answers |= await self._answers_for(app, shard_of, why)
            if all(one in answers for one in ids):
                return [answers[one] for one in ids]
        raise Unavailable("the notification is moving from one worker to another")

    async def _answers_for(self, app: AppId, shard_of: Mapping[NotificationId, int], why: str) -> _Answers:
        """Decide at once what is this process's or nobody's, then ask for the rest; not what changed owners meanwhile.

        Between looking at what is owned and the order there is no pause, and from the order on the shards stay.
        """
        owned = self._shards.owned
        borrowed = await self._shards.borrow({shard for shard in shard_of.values() if shard not in owned})
        try:
            decidable = self._shards.owned | borrowed.shards
            here = {one: shard for one, shard in shard_of.items() if shard in decidable}
            answers = await self._decide(app, here, why)
        finally:
            await borrowed.give_back()
        elsewhere = [one for one, shard in shard_of.items() if shard not in decidable]
        return answers | (await self._ask(app, elsewhere, why) if elsewhere else {})

    async def _shards_of(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, int]:
        """The shards of those of *ids* that are *app*'s: what is another's is not kept from being leased.

        Of what is a log's this store decides nothing: its shards are nobody's here, and a worker may have it.
        """
        rows = await self._database.read_to_lease(lambda connection: list(select_in(connection, _FIND, ids)))
        return {row[0]: row[1] for row in rows if row[2] == app and row[1] < SHARDS}

    def busy_shards(self) -> set[int]:
        """The shards of which a withdrawal is being written."""
        return set(self._deciding)

    async def _decide(self, app: AppId, shard_of: Mapping[NotificationId, int], why: str) -> _Answers:
        """Write what is decided; until then nothing of it is leased, and its shards stay.

        No answer for what the transaction did not find: another process's by now, or cleared away.
        """
        ids = list(shard_of)
        if not ids:
            return {}
        orders = [TakeBack(app, one, why, self._holdings.held_of(one)) for one in ids]
        future = self._database.commits.submit(WITHDRAW, orders, len(orders))
        for one in ids:
            self._holdings.block(one)
        self._deciding.update(shard_of.values())
        future.add_done_callback(partial(self._decided, app, shard_of))
        decided = zip(ids, await asyncio.shield(future), strict=True)
        return {one: answer for one, answer in decided if answer is not None}

    def _decided(
        self, app: AppId, shard_of: Mapping[NotificationId, int], future: asyncio.Future[list[Withdrawal | None]]
    ) -> None:
        self._deciding -= Counter(shard_of.values())
        for one in shard_of:
            self._holdings.unblock(one)
        if future.cancelled() or future.exception() is not None:
            self._look_again()
            return
        left: list[TakeBack] = []
        for one, answer in zip(shard_of, future.result(), strict=True):
            if isinstance(answer, TooLate) and not self._holdings.note_withdrawn(one):
                self._holdings.forget_ready(one)  # given back, or settled for later, meanwhile
                left.append(TakeBack(app, one, None))
        if left:
            with contextlib.suppress(Unavailable):  # the store is closing: whoever releases it closes it
                closing = self._database.commits.submit(CLOSE, left, len(left))
                closing.add_done_callback(lambda done: done.cancelled() or done.exception())  # the same

    async def _ask(self, app: AppId, ids: Sequence[NotificationId], why: str) -> _Answers:
        """Ask the owners of any number of *ids*, a message's worth at a time."""
        answers: _Answers = {}
        for at in range(0, len(ids), _IDS_PER_QUESTION):
            question = _Question(os.urandom(8), app, tuple(ids[at : at + _IDS_PER_QUESTION]), why)
            answers |= await self._ask_once(question)
        return answers

    async def _ask_once(self, question: _Question) -> _Answers:
        if self._peers is None:
            raise Unavailable("another process owns the notification")
        asked = _Asked(set(question.ids), {}, asyncio.get_running_loop().create_future())
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
            shard_of = await self._shards_of(question.app, question.ids)
            mine = {one: shard for one, shard in shard_of.items() if shard in self._shards.owned}
            if not mine:
                return
            answers = await self._decide(question.app, mine, question.why)
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
