"""Kafka in KRaft mode, of its Maven artefacts; every node is both broker and controller."""

import socket
import struct
import subprocess
from typing import Final

from scripts.services.jars import FILES, LASTING, QUICK_START, class_path
from scripts.services.service import HOST, Broken, Node, Service, receive

CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"  # any 22 characters of base64
METADATA: Final = 3  # the number of that request (kafka.apache.org/protocol)


class Kafka(Service):
    """Brokers with replicated topics where there are three; they flush when the system does, as Kafka's way is."""

    kind = "Kafka"

    @classmethod
    def fetch(cls) -> None:
        """See Service."""
        class_path("kafka")

    def ports_wanted(self) -> int:
        """One for clients, one for controllers, each node."""
        return 2 * self.size

    def port(self, node: Node) -> int:
        """Where clients reach the node."""
        return self.ports[2 * (node.number - 1)]

    def controller(self, node: Node) -> str:
        """Where controllers reach each other."""
        return f"{HOST}:{self.ports[2 * node.number - 1]}"

    def configure(self, node: Node) -> None:
        """Write the properties and format the storage, once."""
        file = node.folder / "server.properties"
        if file.exists():
            return
        copies, in_sync = min(3, self.size), min(2, self.size)
        settings = {
            "process.roles": "broker,controller",
            "node.id": node.number,
            "controller.quorum.voters": ",".join(f"{n.number}@{self.controller(n)}" for n in self.nodes),
            "listeners": f"PLAINTEXT://{HOST}:{self.port(node)},CONTROLLER://{self.controller(node)}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port(node)}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": node.folder / "log",
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 8,  # 50 take longer to make
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": 8,
            "group.initial.rebalance.delay.ms": 0,  # no first join waits 3 s
            "broker.session.timeout.ms": 3000,  # how long a killed broker keeps its partitions
            "broker.heartbeat.interval.ms": 500,
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        format_it = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(file)]
        made = subprocess.run(
            self._java(list(QUICK_START), *format_it),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            file.unlink()
            raise Broken(f"formatting Kafka's storage ended with {made.returncode}:\n{made.stdout}")

    def command(self, node: Node) -> list[str]:
        """See Service."""
        speed = LASTING if self.durable else QUICK_START
        return self._java(["-Xms512m", "-Xmx512m", *speed], "kafka.Kafka", str(node.folder / "server.properties"))

    def ready(self, node: Node) -> bool:
        """The node opens its port once it is unfenced; then it must know all brokers that run."""
        return self.brokers_known(node) >= sum(other.pid is not None for other in self.nodes)

    def brokers_known(self, node: Node) -> int:
        """How many live brokers the node knows of: Metadata version 1 for no topics."""
        request = struct.pack(">hhih4si", METADATA, 1, 1, 4, b"wait", 0)
        with socket.create_connection((HOST, self.port(node)), 2) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", receive(connection, 4))
            answer = receive(connection, size)
        return int.from_bytes(answer[4:8], "big")

    @property
    def url(self) -> str:
        """See Service."""
        return ",".join(f"{HOST}:{self.port(node)}" for node in self.nodes)

    def _java(self, machine: list[str], *program: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={FILES}/kafka/log4j2.yaml"
        return ["java", *machine, "-Djava.awt.headless=true", logging, "-cp", class_path("kafka"), *program]
