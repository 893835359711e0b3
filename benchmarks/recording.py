"""What of a log is recorded on PostgreSQL by one process and by two: arrivals and settlements, all written before.

``python -m benchmarks.recording URL BOOTSTRAP GROUP`` is one recorder, which says how many partitions it has.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import uvloop
from confluent_kafka import Producer
from msgspec import structs

from benchmarks.deliveries import notification
from benchmarks.stores import spent_s, up
from scripts.services.kafka import Kafka
from scripts.services.postgres import Postgres
from scripts.services.service import Service
from waypost.bench.programs import cpu_s
from waypost.bench.rows import Row, row
from waypost.bench.stores import connected
from waypost.domain.channel import Channel
from waypost.domain.delivery import Attempt, Target
from waypost.domain.errors import Unavailable
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.notification import Lane
from waypost.domain.settlement import Change, Sent
from waypost.pipeline.record import record
from waypost.ports.ledger import Decided
from waypost.ports.work import Settled
from waypost.runtime.clock import SystemClock
from waypost.stores.kafka.messages import SettlementRecord, Task, encode, key_of
from waypost.stores.kafka.recording import KafkaRecords
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, prepare
from waypost.stores.sql.database import prepare as prepare_store
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.store import open_store
from waypost.telemetry import Event
from waypost.telemetry.sink import Silent

MESSAGES = int(os.environ.get("MESSAGES", "40000"))
USERS = 5_000
ROUNDS = 3
PARTITIONS = 8
LOOK_S = 0.02


class _Saying(Silent):
    """Says how many partitions a recorder has, a line each time."""

    def event(self, event: Event, /, **fields: object) -> None:
        """See Telemetry."""
        if event is Event.RECORDING_SHARED:
            print(fields["count"], flush=True)


def run() -> list[Row]:
    """One and two, in turn; the medians."""
    seen: dict[int, list[tuple[float, float, float]]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name, ExitStack() as exits:
        Path(name).chmod(0o755)  # PostgreSQL runs as a user of its own
        postgres = exits.enter_context(up(Postgres, Path(name) / "postgres"))
        kafka = exits.enter_context(up(Kafka, Path(name) / "kafka"))
        for n in range(ROUNDS):
            for count, rounds in seen.items():
                rounds.append(_round(postgres, kafka, f"bench_{n}_{count}", count))
    medians = {count: [statistics.median(each) for each in zip(*rounds, strict=True)] for count, rounds in seen.items()}
    found = []
    for count, (per_s, own_us, servers_us) in medians.items():
        what = f"{count} recording"
        found += [
            row("recording", f"{what}: notifications a second", per_s, "1/s", "one", per_s / medians[1][0]),
            row("recording", f"{what}: their CPU a notification", own_us, "µs", "one", own_us / medians[1][1]),
            row("recording", f"{what}: CPU of the servers", servers_us, "µs", "one", servers_us / medians[1][2]),
        ]
    return found


def _round(postgres: Service, kafka: Service, name: str, count: int) -> tuple[float, float, float]:
    """Recorded a second; microseconds of CPU a notification, of the recorders and of both servers."""
    with connected(postgres.url) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = f"{postgres.url.rpartition('/')[0]}/{name}"
    prepare_store(SqlSettings(url), SystemClock().now())
    settings = _settings(kafka.url, name)
    topics = TopicNames(settings)
    prepare(settings, topics)
    command = [sys.executable, "-m", "benchmarks.recording", kafka.url, name]
    told = os.environ | {"STORE_URL": url}  # which may hold a password: arguments are for everybody to read
    recorders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=told) for _ in range(count)]
    try:
        for each in recorders:
            _await_share(each, PARTITIONS * (len(Lane) + 1) // count)
        producer = _written(kafka.url, topics)
        before = [cpu_s(each.pid) for each in recorders], spent_s(postgres) + spent_s(kafka)
        producer.commit_transaction(60)
        started_s = time.perf_counter()
        with connected(url, read_only=True) as connection:
            while _recorded(connection) < MESSAGES:
                time.sleep(LOOK_S)  # the ledger tells nobody
        took_s = time.perf_counter() - started_s
        own_s = sum(cpu_s(each.pid) for each in recorders) - sum(before[0])
        servers_s = spent_s(postgres) + spent_s(kafka) - before[1]
    finally:
        for each in recorders:
            each.kill()
            each.wait()
    return MESSAGES / took_s, own_s / MESSAGES * 1e6, servers_s / MESSAGES * 1e6


def _await_share(recorder: subprocess.Popen[str], partitions: int) -> None:
    assert recorder.stdout is not None, "it was asked for"
    while int(recorder.stdout.readline()) != partitions:
        pass


def _recorded(connection: Connection) -> int:
    sql = "SELECT coalesce(sum(delta), 0) FROM counter WHERE status = 'sent'"
    return int(connection.execute(sql).fetchone()[0])


def _written(bootstrap: str, topics: TopicNames) -> Producer:
    """All of it, in a transaction that is not committed yet."""
    options = {"bootstrap.servers": bootstrap, "transactional.id": "bench", "linger.ms": 5}
    producer = Producer({**options, "queue.buffering.max.messages": 1_000_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    for n in range(MESSAGES):
        made = structs.replace(notification(n), user_id=UserId(f"user-{n % USERS}"))
        key, at = key_of(made.app, made.user_id), made.created_at
        change = Change(0, 1, Sent("id"), at, Attempt(at, "taken", "200", "", b""))
        settled = Settled(made, (change,), (Target(0, DeviceId("device-0"), Channel("fcm")),))
        producer.produce(topics.of(Lane.NORMAL), encode(Task(made)), key)
        producer.produce(topics.records, encode(SettlementRecord(Decided(settled))), key)
    assert producer.flush(60) == 0, "the broker took all of it"
    return producer


def _settings(bootstrap: str, name: str) -> KafkaSettings:
    return KafkaSettings(
        bootstrap=bootstrap, group=name, prefix=f"{name}.", partitions=PARTITIONS, replication=1, trial=True
    )


async def _record(url: str, bootstrap: str, name: str) -> None:
    """SettlementRecord until killed."""
    settings, clock = _settings(bootstrap, name), SystemClock()
    store = await open_store(SqlSettings(url), clock=clock, peers=None, telemetry=Silent())
    log = KafkaRecords(settings, TopicNames(settings), store.ledger, _Saying(), clock, is_shared=True)
    while True:
        with suppress(Unavailable):  # leaders of topics that were just made are being elected
            await record(log, store.ledger)


if __name__ == "__main__":
    uvloop.run(_record(os.environ["STORE_URL"], *sys.argv[1:]))
