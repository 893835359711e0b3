"""Servers by name in one folder, shared by every process that knows the folder: started once, by whoever is first."""

import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from scripts.services.cassandra import Cassandra
from scripts.services.kafka import Kafka
from scripts.services.postgres import Postgres, PostgresPair
from scripts.services.redis import Redis, RedisCluster, RedisSentinel
from scripts.services.s3 import S3
from scripts.services.service import STATE, Broken, Missing, Service

ROOT: Final = Path(__file__).resolve().parents[2]
SHAPES: Final[dict[str, tuple[type[Service], int]]] = {
    "postgres": (Postgres, 1),
    "postgres-pair": (PostgresPair, 2),
    "redis": (Redis, 1),
    "kafka": (Kafka, 1),
    "cassandra": (Cassandra, 1),
    "s3": (S3, 1),
    "redis-cluster": (RedisCluster, 3),
    "redis-sentinel": (RedisSentinel, 3),
    "kafka-three": (Kafka, 3),
    "cassandra-three": (Cassandra, 3),
}
"""Name -> what it is, and how many nodes it has."""
BASE: Final = "WAYPOST_SERVICES"
"""The variable that names the folder of a whole run's servers to its processes."""
SINGLE: Final = ("postgres", "redis", "kafka", "cassandra")
"""What most tests use."""
AT_END: Final = 'cat >/dev/null; [ ! -e "$1" ] || exec "$0" -m scripts.services down --wipe --base "$1"'
"""A shell waits for the end of its input, which comes however its owner ends; then it ends the servers, if any."""


class Shared:
    """The servers of one folder. A name may have a plus sign and a word more: a second set of that shape."""

    def __init__(self, base: Path) -> None:
        """Take the folder, or make it."""
        self.base = base
        base.mkdir(mode=0o711, parents=True, exist_ok=True)  # the owner of PostgreSQL's processes must pass through
        if base.stat().st_uid != os.getuid():
            raise Broken(f"{base} belongs to somebody else")

    def need(self, name: str, *, durable: bool = False, port: int | None = None) -> Service:
        """These servers, serving: started here, or by another process before."""
        with self.alone(name):
            service = self.service(name, durable=durable, port=port)
            try:
                service.up()
            except Broken:
                service.down()
                raise
        return service

    def service(self, name: str, *, durable: bool = False, port: int | None = None) -> Service:
        """These servers, whether they run or not."""
        if not sys.platform.startswith("linux"):
            raise Missing("the servers run on Linux alone")
        make, size = SHAPES[name.partition("+")[0]]
        return make(self.base / name, size=size, durable=durable, port=port)

    def each(self) -> Iterator[tuple[str, Service]]:
        """All that has been started here."""
        for state in sorted(self.base.glob(f"*/{STATE}")):
            name = state.parent.name
            yield name, self.service(name)

    def down(self, *, wipe: bool) -> None:
        """End all of them; *wipe*: their data goes too."""
        for name, service in self.each():
            with self.alone(name):
                service.down()
        if wipe:
            shutil.rmtree(self.base)

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Keep other processes out of what is done under that name."""
        with (self.base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@contextmanager
def kept() -> Iterator[Path]:
    """A folder for servers that do not outlive this process, even if it is killed; after the block they are gone."""
    base = Path(tempfile.gettempdir()) / f"waypost-services-{secrets.token_hex(6)}"
    end_them = ["sh", "-c", AT_END, sys.executable, str(base)]
    with subprocess.Popen(end_them, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True):
        yield base
