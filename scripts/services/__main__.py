"""Start and end real servers: `python -m scripts.services up postgres redis`.

NAME is one of the shapes below; what concerns one node takes its number after a colon: `kill kafka-three:2`.
"""

import argparse
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.services import processes
from scripts.services.cassandra import Cassandra
from scripts.services.kafka import Kafka
from scripts.services.postgres import Postgres
from scripts.services.redis import Redis
from scripts.services.s3 import S3
from scripts.services.service import Broken, Missing, Service
from scripts.services.shared import ROOT, SHAPES, SINGLE, Shared

LEVERS: dict[str, Callable[[Service, int], None]] = {
    "start": Service.start,
    "stop": Service.stop,
    "kill": Service.kill,
    "freeze": Service.freeze,
    "thaw": Service.thaw,
}


def main() -> None:
    """Do one thing."""
    asked = arguments()
    try:
        if asked.action == "fetch":
            fetch()
            return
        shared = Shared(asked.base)
        match asked.action:
            case "up":
                up(shared, asked.names or list(SINGLE), durable=asked.durable, port=asked.port)
            case "down":
                shared.down(wipe=asked.wipe)
            case "status":
                status(shared)
            case lever:
                pull(shared, LEVERS[lever], asked.names)
    except (Missing, Broken) as failure:
        sys.exit(str(failure))


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="scripts.services", description=__doc__, epilog=f"shapes: {' '.join(SHAPES)}")
    parser.add_argument("action", choices=["fetch", "up", "down", "status", *LEVERS])
    parser.add_argument("names", metavar="NAME", nargs="*", help="for up: one of each kind if none is named")
    parser.add_argument("--base", type=Path, default=default_base(), help="where data and state are")
    parser.add_argument("--durable", action="store_true", help="keep acknowledged writes even if the machine stops")
    parser.add_argument("--wipe", action="store_true", help="down: the data goes too")
    parser.add_argument("--port", type=int, help="the first port (for one name); otherwise free ones are found")
    asked = parser.parse_args()
    if any(name.partition(":")[0] not in SHAPES for name in asked.names):
        parser.error(f"NAME is one of: {' '.join(SHAPES)}")
    return asked


def default_base() -> Path:
    """A folder of this clone's, which PostgreSQL's owner can reach wherever the clone is."""
    return Path(tempfile.gettempdir()) / f"waypost-services-{zlib.crc32(bytes(ROOT)):08x}"


def fetch() -> None:
    """Fetch what all of them need; say all that is missing."""
    failures = []
    for service in (Postgres, Redis, Kafka, Cassandra, S3):
        try:
            service.fetch()
        except Missing as missing:
            failures.append(str(missing))
    if failures:
        raise Missing("\n".join(dict.fromkeys(failures)))


def up(shared: Shared, names: list[str], *, durable: bool, port: int | None) -> None:
    """Start servers side by side; print each one's address as it is ready."""

    def start(name: str) -> str:
        began = time.monotonic()
        service = shared.need(name, durable=durable, port=port)
        return f"{name:16}{service.url}  (ready in {time.monotonic() - began:.1f} s)"

    with ThreadPoolExecutor(len(names)) as pool:
        for line in pool.map(start, names):
            print(line, flush=True)


def status(shared: Shared) -> None:
    """Say what runs, and what it needs."""
    for name, service in shared.each():
        for node in service.nodes:
            facts = f"pid {node.pid}, {processes.memory_mib(node.pid)} MiB" if node.pid else "not running"
            print(f"{name}:{node.number:<4} {facts}")


def pull(shared: Shared, lever: Callable[[Service, int], None], names: list[str]) -> None:
    """Do one thing to some nodes."""
    for each in names:
        name, _, number = each.partition(":")
        lever(shared.service(name), int(number or 1))


if __name__ == "__main__":
    main()
