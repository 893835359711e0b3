"""The withdrawals topic, read whole by every worker: which notifications make no further attempt, and why."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from waypost.domain.amendment import Withdraw
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Notification
from waypost.domain.time import DAY_MS
from waypost.stores.kafka.lately import Lately
from waypost.stores.kafka.messages import Newer, TakenBack, Unreadable, encode, taken_back_in
from waypost.stores.kafka.producer import Acknowledging, Outgoing
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import unavailable

_POLL_S = 0.25
_ASK_S = 15.0


class WithdrawalTable:
    """The orders to withdraw, as far as the topic was read."""

    def __init__(self, settings: KafkaSettings, topic: str, producer: Acknowledging) -> None:
        self._why: Lately[tuple[AppId | None, NotificationId]] = Lately(settings.retention_days * DAY_MS)
        """By app and id, at least for as long as a topic must keep it; None says that it is any app's."""
        self.on_news: Callable[[], None] = lambda: None
        """Called when there are more withdrawals."""
        self._topic = topic
        self._producer = producer
        self._consumer = Consumer(
            {
                **settings.client(),
                "group.id": f"{settings.group}.withdrawals",  # librdkafka wants one; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
            }
        )
        self._loop = asyncio.get_running_loop()
        self._stopping = False
        self._unread: set[int] = set()
        self._read_once = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="waypost-log-withdrawals", daemon=True)

    async def start(self) -> None:
        """Read all that there is; from then on what comes. Unavailable where the cluster cannot be asked."""
        try:
            found = await asyncio.to_thread(self._consumer.list_topics, self._topic, _ASK_S)
        except KafkaException as failed:
            raise unavailable(failed) from failed
        self._unread = set(found.topics[self._topic].partitions)
        self._consumer.assign([TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in self._unread])
        self._thread.start()
        await self._read_once.wait()

    def why(self, notification: Notification) -> str | None:
        """Return why a notification makes no further attempt; None where its own app did not withdraw it."""
        found = self._why.get((notification.app, notification.id)) if self._why else None
        return found if found is not None else self._why.get((None, notification.id))

    def has(self, app: AppId, notification_id: NotificationId) -> bool:
        """Tell whether a notification of *app* was withdrawn."""
        return (app, notification_id) in self._why or (None, notification_id) in self._why

    async def take_back(self, orders: Sequence[Withdraw]) -> None:
        """Tell every worker of a withdrawal; Unavailable where that is not known to be written."""
        told = [TakenBack(each.id, each.why, each.app) for each in orders]
        await self._producer.produce([Outgoing(self._topic, each.id, encode(each)) for each in told])

    async def stop(self) -> None:
        """Stop reading."""
        self._stopping = True
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._consumer.close)

    def _run(self) -> None:
        while not self._stopping:
            first = self._consumer.poll(_POLL_S)
            if first is not None:
                self._loop.call_soon_threadsafe(self._take, [first, *self._consumer.consume(500, 0)])

    def _take(self, messages: list[Message]) -> None:
        is_news = False
        for message in messages:
            error = message.error()
            if error is None:
                is_news |= self._note(message.value() or b"", message.timestamp()[1])
            elif error.code() == KafkaError._PARTITION_EOF:
                self._unread.discard(message.partition() or 0)
        if not self._unread:
            self._read_once.set()
        if is_news:
            self.on_news()

    def _note(self, value: bytes, at_ms: int) -> bool:
        """Note an order, and tell whether it was new."""
        try:
            order: TakenBack = taken_back_in(value)
        except (Unreadable, Newer):
            return False  # best effort: its sender said so
        key = (order.app, order.id)
        is_new = key not in self._why
        self._why.note(key, order.why, at_ms)
        return is_new
