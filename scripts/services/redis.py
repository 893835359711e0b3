"""Redis, of the Debian package `redis-server`: alone, as a cluster, or with replicas and sentinels."""

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from scripts.services.service import HOST, Missing, Node, Service

SLOTS: Final = 16_384
DOWN_AFTER_MS: Final = 1000


class Redis(Service):
    """One server, or independent ones."""

    kind = "Redis"

    @classmethod
    def fetch(cls) -> None:
        """See Service."""
        _server()

    def ports_wanted(self) -> int:
        """See Service."""
        return self.size

    def port(self, node: Node) -> int:
        """Where the node listens."""
        return self.ports[node.number - 1]

    def configure(self, node: Node) -> None:
        """See Service; replicas and sentinels rewrite theirs, so it is written once."""
        file = node.folder / "redis.conf"
        if not file.exists():
            common = [f"bind {HOST}", f"port {self.port(node)}", f"dir {node.folder}", "protected-mode yes"]
            file.write_text("\n".join([*common, *self.settings(node)]) + "\n")

    def settings(self, node: Node) -> list[str]:
        """Lines of the node's configuration beyond its place."""
        append_only = ["appendonly yes", f"appendfsync {'always' if self.durable else 'everysec'}"]
        return ['save ""', *append_only, "databases 1024", "repl-diskless-sync-delay 0"]

    def command(self, node: Node) -> list[str]:
        """See Service."""
        return [_server(), str(node.folder / "redis.conf")]

    def ready(self, node: Node) -> bool:
        """See Service."""
        return "+PONG" in self.ask(node, "PING")

    def ask(self, node: Node, line: str) -> str:
        """The answer to one inline command, undecoded."""
        with socket.create_connection((HOST, self.port(node)), 2) as connection:
            connection.sendall(line.encode() + b"\r\n")
            return connection.recv(1 << 16).decode()

    @property
    def url(self) -> str:
        """See Service."""
        return f"redis://{HOST}:{self.ports[0]}/0"


class RedisCluster(Redis):
    """Primaries that share the slots between them."""

    kind = "Redis Cluster"

    def ports_wanted(self) -> int:
        """Each has one more, for the others."""
        return 2 * self.size

    def settings(self, node: Node) -> list[str]:
        """See Redis."""
        bus = self.ports[self.size + node.number - 1]
        return [*super().settings(node), "cluster-enabled yes", f"cluster-port {bus}", "cluster-node-timeout 2000"]

    def unite(self) -> None:
        """Deal out the slots and make the nodes known to each other, once."""
        first = self.nodes[0]
        if "cluster_slots_assigned:0" in self.ask(first, "CLUSTER INFO"):
            share = SLOTS // self.size + 1
            for index, node in enumerate(self.nodes):
                self.ask(node, f"CLUSTER ADDSLOTSRANGE {index * share} {min((index + 1) * share, SLOTS) - 1}")
                self.ask(node, f"CLUSTER SET-CONFIG-EPOCH {node.number}")
                self.ask(first, f"CLUSTER MEET {HOST} {self.port(node)} {self.ports[self.size + index]}")
        while not all(self._united(node) for node in self.nodes):
            time.sleep(0.05)  # nodes tell each other, and nobody else

    def _united(self, node: Node) -> bool:
        told = self.ask(node, "CLUSTER INFO")
        return "cluster_state:ok" in told and f"cluster_known_nodes:{self.size}" in told


class RedisSentinel(Redis):
    """A primary (node 1), its replicas, and as many sentinels as there are of both."""

    kind = "Redis with sentinels"
    NAME: Final = "waypost"
    """What the sentinels call it."""

    def processes_wanted(self) -> int:
        """See Service."""
        return 2 * self.size

    def ports_wanted(self) -> int:
        """See Service."""
        return 2 * self.size

    def start_order(self) -> list[list[Node]]:
        """Sentinels last: one that starts before the replicas looks for them again only after 10 s."""
        return [self.nodes[:1], self.nodes[1 : self.size], self.nodes[self.size :]]

    def settings(self, node: Node) -> list[str]:
        """See Redis."""
        if self._is_sentinel(node):
            return [
                f"sentinel monitor {self.NAME} {HOST} {self.ports[0]} {self.size // 2 + 1}",
                f"sentinel down-after-milliseconds {self.NAME} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {self.NAME} 5000",
            ]
        follow = [f"replicaof {HOST} {self.ports[0]}"] if node.number > 1 else []
        return [*super().settings(node), *follow]

    def command(self, node: Node) -> list[str]:
        """See Service."""
        return [*super().command(node), *(["--sentinel"] if self._is_sentinel(node) else [])]

    def ready(self, node: Node) -> bool:
        """A replica has its copy, a sentinel knows of all others.

        A primary that comes back says `master` until the sentinels make it a replica, seconds later.
        """
        if self._is_sentinel(node):
            fields = self.ask(node, f"SENTINEL MASTER {self.NAME}").split("\r\n")
            known = [int(fields[fields.index(name) + 2]) for name in ("num-slaves", "num-other-sentinels")]
            return known == [self.size - 1, self.size - 1]
        told = self.ask(node, "INFO replication")
        return "role:master" in told or "master_link_status:up" in told

    def primary(self) -> Node:
        """The node that the sentinels hold for the primary."""
        fields = self.ask(self.nodes[-1], f"SENTINEL GET-MASTER-ADDR-BY-NAME {self.NAME}").split("\r\n")
        return self.nodes[self.ports.index(int(fields[4]))]

    def replicas(self) -> list[Node]:
        """All servers but the primary."""
        primary = self.primary().number
        return [node for node in self.nodes[: self.size] if node.number != primary]

    def addresses(self) -> list[str]:
        """Where the sentinels are: `host:port`."""
        return [f"{HOST}:{port}" for port in self.ports[self.size :]]

    @contextmanager
    def behind(self) -> Iterator[Node]:
        """Meanwhile replicas get nothing more of the primary, which it gives; if it dies, one of them takes over.

        Sentinels take no replica that has heard nothing for ten times `down-after-milliseconds`: so that is long here.
        """
        primary = self.primary()
        self._patience_ms(3 * DOWN_AFTER_MS)
        self.ask(primary, "ACL SETUSER default -psync -sync")  # until it is started again
        self.ask(primary, "CLIENT KILL TYPE replica")
        try:
            yield primary
        finally:
            self._patience_ms(DOWN_AFTER_MS)

    def _patience_ms(self, milliseconds: int) -> None:
        for node in self.nodes[self.size :]:
            self.ask(node, f"SENTINEL SET {self.NAME} down-after-milliseconds {milliseconds}")

    @property
    def url(self) -> str:
        """The sentinels' addresses, and the name to ask them for."""
        return f"redis+sentinel://{','.join(self.addresses())}/{self.NAME}/0"

    def _is_sentinel(self, node: Node) -> bool:
        return node.number > self.size


def _server() -> str:
    found = shutil.which("redis-server")
    if found is None:
        raise Missing("Redis is not installed: apt-get install redis-server")
    return found
