"""Streams as doors: submissions are written as any program writes them, and read by the product on the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from tests.adapters.rest.service import DEMO
from tests.contract.sources import RedisSourceUnderTest, SourceUnderTest
from tests.hostile.behind import Behind
from tests.hostile.corpus import Case
from tests.hostile.doors import Answer, NoForm, Told, Took, said_in
from waypost.domain.ids import CallerId
from waypost.domain.scope import EVERY_SCOPE
from waypost.entrypoints.streams.stream_intake import StreamIntake
from waypost.pipeline.intake import Caller
from waypost.ports.source import PAYLOAD, Foreign, RefusedMessage, Source

WAIT_S = 120
BATCH = 50
JOB_FIELDS = frozenset({"user_id", "title", "body", "data"})

Fields = Mapping[bytes, bytes]


class Read:
    """What was acknowledged or buried."""

    def __init__(self) -> None:
        self.places: set[str] = set()
        self.buried: list[RefusedMessage] = []
        self._news = asyncio.Event()

    def note(self, messages: Iterable[Foreign]) -> None:
        """These are done."""
        self.places.update(each.place for each in messages)
        self._news.set()

    async def all_of(self, count: int) -> None:
        """Return when so many are."""
        async with asyncio.timeout(WAIT_S):
            while len(self.places) < count:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def reading(service: Behind, reader: Source) -> AsyncIterator[Read]:
    """Read until the block ends."""
    read, ack, bury = Read(), reader.ack, reader.bury

    async def acked(messages: Sequence[Foreign]) -> None:
        await ack(messages)
        read.note(messages)

    async def buried(refused: Sequence[RefusedMessage]) -> None:
        await bury(refused)
        read.buried.extend(refused)
        read.note([each.message for each in refused])

    reader.ack, reader.bury = acked, buried  # type: ignore[method-assign]  # the real ones are called
    caller = Caller(DEMO, CallerId("source:hostile"), EVERY_SCOPE)
    door = StreamIntake("hostile", reader, service.api.intake, caller, service.api.telemetry, BATCH, service.api.limits)
    await door.start()
    try:
        yield read
    finally:
        await door.stop()


class FromStream:
    """One message a submission."""

    def __init__(self, behind: Behind, source: SourceUnderTest) -> None:
        self.behind = behind
        self._source = source

    async def offer(self, cases: Sequence[Case]) -> list[Answer]:
        """See Door."""
        written = {case.name: fields for case in cases if (fields := self.form(case)) is not None}
        async with reading(self.behind, self._source.reader()) as read:
            await self.write(list(written.values()))
            await read.all_of(len(written))
        assert await self._source.left() == 0
        return [self._answer(case, written.get(case.name), read.buried) for case in cases]

    def form(self, case: Case) -> Fields | None:
        """The message; None where it cannot be said."""
        return {PAYLOAD: case.body}

    async def write(self, messages: Sequence[Fields]) -> None:
        """Append them."""
        await self._source.write(*(each[PAYLOAD] for each in messages))

    def _answer(self, case: Case, fields: Fields | None, buried: Sequence[RefusedMessage]) -> Answer:
        if fields is None:
            return NoForm()
        for each in buried:
            if each.message.fields == fields or each.message.fields.get(PAYLOAD) == fields.get(PAYLOAD, b"?"):
                return Told(each.code, ("", *(part.partition(": ")[0] for part in each.why.split("; "))))
        return Took(self.behind.taken.by_name[case.name])


class AsFields(FromStream):
    """The same as jobs of the notifications service, each value a field of its own."""

    def __init__(self, behind: Behind, source: RedisSourceUnderTest) -> None:
        super().__init__(behind, source)
        self._redis = source

    def form(self, case: Case) -> Fields | None:
        """See FromStream: text alone, and data as JSON."""
        said = said_in(case.body)
        if said is None or not {"user_id"} <= said.keys() <= JOB_FIELDS:
            return None
        if not all(isinstance(said.get(name, ""), str) for name in JOB_FIELDS - {"data"}):
            return None
        text = {name: msgspec.json.encode(value) if name == "data" else value.encode() for name, value in said.items()}
        return {("userId" if name == "user_id" else name).encode(): value for name, value in text.items()}

    async def write(self, messages: Sequence[Fields]) -> None:
        """See FromStream."""
        flat = [[part for pair in each.items() for part in pair] for each in messages]
        await self._redis.wire.execute([("XADD", self._redis.stream, "*", *each) for each in flat])
