"""Cassandra, of its Maven artefact; node i listens on 127.0.0.i, which Linux has without asking."""

import socket
import struct
from collections.abc import Iterator
from typing import Final

from scripts.services.jars import FILES, LASTING, QUICK_START, class_path, jar
from scripts.services.service import Node, Service, receive

QUERY, READY, RESULT, STARTUP = 7, 2, 8, 1  # opcodes (native_protocol_v4.spec, section 2.4)
ONE_NO_METADATA: Final = b"\0\1\2"  # consistency ONE; the flag that leaves out the columns' description
VERSION: Final = b"\0\1\0\x0bCQL_VERSION\0\x053.0.0"
RING: Final = 2**64


class Cassandra(Service):
    """Nodes with a fixed share of the ring each, so that they may start together."""

    kind = "Cassandra"

    @classmethod
    def fetch(cls) -> None:
        """See Service."""
        class_path("cassandra")

    def ports_wanted(self) -> int:
        """One for clients and one for nodes, the same on each node's address; one each for JMX, and for who joins."""
        return 2 + self.size + 1

    def address(self, node: Node) -> str:
        """The node's address."""
        return f"127.0.0.{node.number}"

    def token(self, node: Node) -> int:
        """Where its share of the ring begins; who joins takes half of the first one's."""
        share = RING // self.size
        return -RING // 2 + (share * (node.number - 1) if node.number <= self.size else share // 2)

    def join(self) -> Node:
        """One node more, which fetches what is now its own; returns when it serves."""
        self.nodes.append(Node(self.folder / f"node{self.size + 1}", self.size + 1))
        self.start(self.size + 1)
        return self.nodes[-1]

    def start_order(self) -> list[list[Node]]:
        """A node that finds no live seed gives up."""
        return [self.nodes[:1], self.nodes[1:]]

    def configure(self, node: Node) -> None:
        """See Service."""
        seeds = ",".join(f"{self.address(seed)}:{self.ports[1]}" for seed in self.nodes[:2])
        sync = "commitlog_sync: batch" if self.durable else "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms"
        (node.folder / "cassandra.yaml").write_text(f"""cluster_name: waypost
num_tokens: 1
initial_token: '{self.token(node)}'
auto_bootstrap: {str(node.number > self.size).lower()}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seeds}"}}]
listen_address: {self.address(node)}
storage_port: {self.ports[1]}
rpc_address: {self.address(node)}
native_transport_port: {self.ports[0]}
start_native_transport: true
data_file_directories: [{node.folder}/data]
commitlog_directory: {node.folder}/commitlog
hints_directory: {node.folder}/hints
saved_caches_directory: {node.folder}/saved_caches
cdc_raw_directory: {node.folder}/cdc_raw
{sync}
commitlog_segment_size: 16MiB
disk_optimization_strategy: ssd
storage_compatibility_mode: NONE
memtable: {{configurations: {{trie: {{class_name: TrieMemtable}}, default: {{inherits: trie}}}}}}
sstable: {{selected_format: bti}}
auto_snapshot: false
concurrent_reads: 16
concurrent_writes: 16
""")

    def command(self, node: Node) -> list[str]:
        """See Service."""
        return [
            "java", f"@{FILES}/cassandra/jvm.options", "-Xms512m", "-Xmx512m",
            *(LASTING if self.durable else QUICK_START),
            f"-javaagent:{jar('cassandra', 'jamm')}",
            f"-Dcassandra.config=file://{node.folder}/cassandra.yaml",
            f"-Dcassandra.storagedir={node.folder}",
            f"-Dcassandra.logdir={node.folder}",
            f"-Dlogback.configurationFile={FILES}/cassandra/logback.xml",
            f"-Dcassandra.jmx.local.port={self.ports[1 + node.number]}",
            "-cp", class_path("cassandra"), "org.apache.cassandra.service.CassandraDaemon",
        ]  # fmt: skip

    def ready(self, node: Node) -> bool:
        """The node knows all peers, at its own version of the schema; the first starts before there are any.

        With the port alone, a table right after its keyspace was refused.
        """
        mine = self.cql("SELECT schema_version FROM system.local", node)
        peers = self.cql("SELECT schema_version FROM system.peers_v2", node)
        return peers == mine * (len(self.nodes) - 1) or (node.number == 1 and not self._started(2))

    def cql(self, statement: str, node: Node | None = None) -> list[bytes]:
        """Run a statement; the rows' first column, undecoded.

        The native protocol's version 4, raw: tests make and drop keyspaces with it whatever client they try.
        """
        with socket.create_connection((self.address(node or self.nodes[0]), self.ports[0]), 30) as connection:
            if _call(connection, STARTUP, VERSION)[0] != READY:
                raise OSError("Cassandra is not ready")
            asked = statement.encode()
            opcode, body = _call(connection, QUERY, struct.pack(">i", len(asked)) + asked + ONE_NO_METADATA)
        if opcode != RESULT:
            raise OSError(f"{statement}: {body[6:].decode(errors='replace')}")
        return list(_first_columns(body)) if body[:4] == b"\0\0\0\2" else []

    @property
    def url(self) -> str:
        """See Service."""
        return ",".join(f"{self.address(node)}:{self.ports[0]}" for node in self.nodes)

    def _started(self, number: int) -> bool:
        return self.size >= number and self.node(number).pid is not None


def _call(connection: socket.socket, opcode: int, body: bytes) -> tuple[int, bytes]:
    connection.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
    header = receive(connection, 9)
    return header[4], receive(connection, int.from_bytes(header[5:], "big"))


def _first_columns(body: bytes) -> Iterator[bytes]:
    """Of a result of kind Rows without metadata: kind, flags, columns, rows, then the cells (section 4.2.5.2)."""
    columns, rows = struct.unpack(">ii", body[8:16])
    at = 16
    for cell in range(rows * columns):
        size = max(0, int.from_bytes(body[at : at + 4], "big", signed=True))
        if cell % columns == 0:
            yield body[at + 4 : at + 4 + size]
        at += 4 + size
