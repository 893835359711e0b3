"""A broker on Kafka, where another store holds the truth.

    <prefix>work.critical … work.silent                     one a lane, keyed by ``app/user``: so a user's entries have
    <prefix>delivery.push.critical … delivery.push.silent   one reader; for both kinds of work, where they are apart

Readers are a consumer group. What a reader acknowledged is committed up to the lowest offset that it did not, about
once a second and when a partition goes to another; what was acknowledged beyond that is handed out once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from waypost.adapters.kafka.consumer import Committed, GroupConsumer, Incoming, Place
from waypost.adapters.kafka.messages import key_of
from waypost.adapters.kafka.producer import Acknowledging, Outgoing
from waypost.adapters.kafka.progress import Progress
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.shelf import Shelf
from waypost.adapters.kafka.topics import cluster, names_of, provide
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.ports.broker import Entry, Held
from waypost.telemetry import Event, Telemetry

KINDS: Final = tuple(f"{topic}.{lane}" for topic in ("work", "delivery.push") for lane in Lane)
READ_AHEAD: Final = 1_000
"""Entries of a lane that a reader has before it was asked, from which its partitions pause, until half are gone."""
_TRY_AGAIN_S = 1.0


def carrying(settings: KafkaSettings, topic: str) -> dict[str, Lane]:
    """The lanes of *topic* by name; ConfigurationError where others are named."""
    names = names_of(settings, KINDS)
    return {names[f"{topic}.{lane}"]: lane for lane in Lane}


def describe(settings: KafkaSettings, topics: Sequence[str]) -> str:
    """Make the topics that are missing, and say what cluster that is, and how easily it is away; Unavailable."""
    names = [name for topic in topics for name in carrying(settings, topic)]
    copies = provide(settings, names)
    said = "1 copy: while its broker is away, work is leased from the outbox" if copies == 1 else f"{copies} copies"
    return f"{cluster(settings)}, {len(names)} topics, {said}"


class KafkaBroker:
    """See Broker; one reader, from the first time that it reads. Everything runs on the event loop."""

    def __init__(self, settings: KafkaSettings, telemetry: Telemetry, topic: str) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._lanes = carrying(settings, topic)
        self._topics = {lane: name for name, lane in self._lanes.items()}
        self._producer = Acknowledging(settings)
        self._consumer: GroupConsumer | None = None
        self._shelves = {lane: Shelf() for lane in Lane}
        self._parts: dict[Place, Progress] = {}
        self._paused: set[Lane] = set()
        self._preparing: asyncio.Task[None] | None = None
        self._is_prepared = False
        self._is_away = False
        self._on_arrival: Callable[[Lane], None] = lambda lane: None

    def listen(self, tell: Callable[[Lane], None]) -> None:
        """Let *tell* know of each lane that entries came for."""
        self._on_arrival = tell

    def start(self) -> None:
        """See that there are topics, now or when the cluster is there."""
        self._preparing = asyncio.create_task(self._prepare())

    async def stop(self) -> None:
        """Let go of what was received, what was acknowledged committed."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)
        if self._consumer is not None:
            await self._consumer.stop()
        await self._producer.stop()

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """See Broker."""
        if not self._is_prepared:
            raise Unavailable("there are no topics yet")
        topic = self._topics[lane]
        await self._producer.produce([Outgoing(topic, key_of(each.app, each.user_id), each.body) for each in entries])

    async def read(self, lane: Lane, n: int) -> list[Held]:
        """See Broker: of what was received meanwhile."""
        if not self._is_prepared:
            raise Unavailable("there are no topics yet")
        if self._consumer is None:
            self._consumer = GroupConsumer(self._settings, list(self._lanes), self, lambda: False, commits=True)
            self._consumer.start()
        taken = self._shelves[lane].take(n)
        self._regulate(lane)
        self._tell(None if self._consumer.is_connected else "no broker answers")
        if self._is_away and not taken:
            raise Unavailable("the broker is away")
        return taken

    async def ack(self, lane: Lane, held: Sequence[Held]) -> None:
        """See Broker."""
        done: dict[Place, Progress] = {}
        for each in held:
            partition, _, offset = each.place.partition(":")
            place = Place(self._topics[lane], int(partition))
            if (part := self._parts.get(place)) is not None:
                part.settle(int(offset))
                done[place] = part
        if self._consumer is not None:
            self._consumer.done({place: part.watermark for place, part in done.items()})

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """See Owner."""
        for each in partitions:
            self._parts[each.place] = Progress(each.offset, None)
        late = [each.place for each in partitions if self._lanes[each.place.topic] in self._paused]
        if late and self._consumer is not None:
            self._consumer.pause(late)
        if partitions:
            self._telemetry.event(Event.PARTITIONS_TAKEN, count=len(partitions), owned=len(self._parts))

    async def revoked(self, places: Sequence[Place]) -> None:
        """See Owner."""
        self.lost(places)

    def lost(self, places: Sequence[Place]) -> None:
        """See Owner: what of them was received and not asked for is read by their next owner."""
        gone = [place for place in places if self._parts.pop(place, None) is not None]
        for place in gone:
            self._shelves[self._lanes[place.topic]].keep(partial(_is_elsewhere, place.partition))
        if gone:
            self._telemetry.event(Event.PARTITIONS_LEFT, count=len(gone), owned=len(self._parts))

    def received(self, batch: Sequence[Incoming]) -> None:
        """See Owner."""
        lanes = {lane for incoming in batch if (lane := self._receive(incoming)) is not None}
        for lane in lanes:
            self._regulate(lane)
            self._on_arrival(lane)

    def failed(self, error: Exception) -> None:
        """See Owner: whoever reads next joins the readers again."""
        self._consumer = None
        self._paused.clear()
        self.lost(list(self._parts))
        self._tell(str(error))

    def _receive(self, incoming: Incoming) -> Lane | None:
        """Take one message in; the lane that there is more to read of."""
        part = self._parts.get(incoming.place)
        if part is None:
            return None
        if incoming.value is None:
            part.reach(incoming.offset)
            return None
        if not part.receive(incoming.offset):
            return None
        app = AppId(incoming.key.partition(b"/")[0].decode(errors="replace"))
        lane = self._lanes[incoming.place.topic]
        self._shelves[lane].put(Held(app, incoming.value, f"{incoming.place.partition}:{incoming.offset}"))
        return lane

    def _regulate(self, lane: Lane) -> None:
        """Receive nothing more of a lane of which there is enough, and go on with one that has room."""
        if self._consumer is None:
            return
        places = [place for place in self._parts if self._lanes[place.topic] is lane]
        if self._shelves[lane].size >= READ_AHEAD and lane not in self._paused:
            self._paused.add(lane)
            self._consumer.pause(places)
        elif self._shelves[lane].size < READ_AHEAD // 2 and lane in self._paused:
            self._paused.discard(lane)
            self._consumer.resume(places)

    def _tell(self, why: str | None) -> None:
        """Why the cluster cannot be used; an outage is told once when it begins and once when it ends."""
        was_away, self._is_away = self._is_away, why is not None
        if self._is_away and not was_away:
            self._telemetry.event(Event.KAFKA_AWAY, why=why)
        elif was_away and not self._is_away:
            self._telemetry.event(Event.KAFKA_BACK)

    async def _prepare(self) -> None:
        while not self._is_prepared:
            try:
                await asyncio.to_thread(provide, self._settings, list(self._lanes))
                self._is_prepared = True
                self._tell(None)
            except Unavailable as away:
                self._tell(str(away))
                await asyncio.sleep(_TRY_AGAIN_S)


def _is_elsewhere(partition: int, held: Held) -> bool:
    return not held.place.startswith(f"{partition}:")


@asynccontextmanager
async def opened_broker(settings: KafkaSettings, telemetry: Telemetry, topic: str) -> AsyncIterator[KafkaBroker]:
    """One reader of *topic*; a cluster that is away is looked for in the background."""
    broker = KafkaBroker(settings, telemetry, topic)
    broker.start()
    try:
        yield broker
    finally:
        await broker.stop()
