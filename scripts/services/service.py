"""What all servers have in common: nodes, each a process with a folder, that are started, watched and ended."""

import json
import random
import signal
import socket
import struct
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Final

from scripts.services import processes

HOST: Final = "127.0.0.1"
STATE: Final = "service.json"
BELOW_EPHEMERAL: Final = range(12_000, 32_000)
"""Linux gives ports from 32,768 up to whoever connects, so a restarted server could find its port taken."""


class Missing(Exception):
    """A server cannot run here; the text says what to install."""


class Broken(Exception):
    """A server did not start, or does not answer; the text ends with its log."""


FREEZES_WITHIN_S = 30


class Node:
    """One server process with a folder of its own, whoever started it."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.number = number
        self.log = folder / "server.log"
        self._record = folder / "pid"

    @property
    def pid(self) -> int | None:
        """The process as long as it lives."""
        try:
            pid, started = self._record.read_text().split()
        except (OSError, ValueError):
            return None
        facts = processes.stat(int(pid))
        return int(pid) if facts is not None and facts.started == started else None

    def start(self, command: list[str]) -> None:
        """Start the process."""
        pid = processes.spawn(command, self.folder, self.log)
        facts = processes.stat(pid)
        if facts is None:
            processes.reap(pid)
            raise Broken(f"{command[0]} ended at once\n{self.last_words()}")
        self._record.write_text(f"{pid} {facts.started}")

    def freeze(self) -> None:
        """Stop the process and its children where they stand: connections stay open, nothing answers.

        The signal is only a wish: a process that waits for its disk stops a moment later, and may begin a child before.
        """
        end = time.monotonic() + FREEZES_WITHIN_S
        while moving := [pid for pid in self._tree() if processes.is_moving(pid)]:
            for pid in moving:
                processes.send(pid, signal.SIGSTOP)
            if time.monotonic() > end:
                raise Broken(f"process {moving[0]} does not stop")
            time.sleep(0.01)  # nobody tells when another's process has stopped

    def thaw(self) -> None:
        """Let them go on."""
        for pid in self._tree():
            processes.send(pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the process and its children at once, as a crash does."""
        tree = self._tree()
        for pid in tree:
            processes.send(pid, signal.SIGKILL)
        for pid in tree:
            processes.wait_end(pid, patience_s=30)

    def ask_to_end(self, which: signal.Signals) -> None:
        """Ask for a clean end."""
        if (pid := self.pid) is not None:
            processes.send(pid, which)

    def wait_end(self, patience_s: float = 30) -> None:
        """Wait for the clean end that was asked for; kill what takes longer."""
        if (pid := self.pid) is not None and not processes.wait_end(pid, patience_s):
            self.kill()

    def last_words(self) -> str:
        """The end of the log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])

    def _tree(self) -> list[int]:
        return processes.tree(pid) if (pid := self.pid) is not None else []


class Service(ABC):
    """Servers of one kind that work together; all there is of them is in one folder, so that any process may go on."""

    kind: ClassVar[str]
    ends_on: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal for a clean end."""

    def __init__(self, folder: Path, *, size: int = 1, durable: bool = False, port: int | None = None) -> None:
        """Take up what is in *folder*, or prepare something new there.

        *durable*: keep what was acknowledged even if the machine stops. *port*: the first of its ports, free ones if
        None; both count for what is new.
        """
        self.folder = folder
        self.size = size
        self.nodes = [Node(folder / f"node{number}", number) for number in range(1, self.processes_wanted() + 1)]
        saved = json.loads((folder / STATE).read_text()) if (folder / STATE).exists() else {}
        self.durable: bool = saved.get("durable", durable)
        self.ports: list[int] = saved.get("ports") or choose_ports(self.ports_wanted(), port)

    @classmethod
    @abstractmethod
    def fetch(cls) -> None:
        """Get what is needed and may be got without root; raise Missing for what may not."""

    @abstractmethod
    def ports_wanted(self) -> int:
        """How many ports all nodes need together."""

    @abstractmethod
    def configure(self, node: Node) -> None:
        """Write what the node needs before its first start; called before each."""

    @abstractmethod
    def command(self, node: Node) -> list[str]:
        """What runs the node."""

    @abstractmethod
    def ready(self, node: Node) -> bool:
        """Tell whether the node serves, and knows of the others; may raise what a closed port raises."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients connect."""

    def processes_wanted(self) -> int:
        """How many processes there are."""
        return self.size

    def start_order(self) -> list[list[Node]]:
        """Groups of nodes; each starts once the one before it is ready."""
        return [self.nodes]

    def unite(self) -> None:  # noqa: B027 - most have nothing to do
        """Make one of the nodes, once all of them run."""

    def up(self) -> None:
        """Start what does not run, and wait until all of it serves."""
        self.fetch()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / STATE).write_text(json.dumps({"durable": self.durable, "ports": self.ports}))
        for group in self.start_order():
            for node in group:
                self._launch(node)
            for node in group:
                self.wait_ready(node)
        self.unite()
        for node in self.nodes:
            self.wait_ready(node)

    def running(self) -> bool:
        """Tell whether every node has a process."""
        return all(node.pid is not None for node in self.nodes)

    def start(self, number: int = 1) -> None:
        """Start a node on its old data, and wait until it serves."""
        node = self.node(number)
        self._launch(node)
        self.wait_ready(node)

    def stop(self, number: int = 1) -> None:
        """End a node as its operator would."""
        node = self.node(number)
        node.ask_to_end(self.ends_on)
        node.wait_end()

    def kill(self, number: int = 1) -> None:
        """End a node as a crash does (SIGKILL)."""
        self.node(number).kill()

    def freeze(self, number: int = 1) -> None:
        """Let a node stand still (SIGSTOP)."""
        self.node(number).freeze()

    def thaw(self, number: int = 1) -> None:
        """Let it go on (SIGCONT)."""
        self.node(number).thaw()

    def down(self) -> None:
        """End all nodes as their operator would, frozen ones too."""
        for node in self.nodes:
            node.ask_to_end(self.ends_on)
            node.thaw()
        for node in self.nodes:
            node.wait_end()

    def node(self, number: int) -> Node:
        """The node of that number, from 1."""
        return self.nodes[number - 1]

    def wait_ready(self, node: Node, patience_s: float = 240) -> None:
        """Ask again and again until the node serves; Broken if it ends or takes too long."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if node.pid is None:
                raise Broken(f"{self.kind} {node.number} ended; the end of {node.log}:\n{node.last_words()}")
            try:
                if self.ready(node):
                    return
            except (OSError, ValueError, struct.error):
                pass  # not listening yet, or not yet with a whole answer
            time.sleep(0.05)  # not all of them tell when they are ready
        raise Broken(f"{self.kind} {node.number} not ready after {patience_s} s; {node.log}:\n{node.last_words()}")

    def _launch(self, node: Node) -> None:
        if node.pid is None:
            node.folder.mkdir(exist_ok=True)
            self.configure(node)
            node.start(self.command(node))


def choose_ports(count: int, first: int | None) -> list[int]:
    """*count* ports from *first* on, or free ones from all over."""
    if first is not None:
        return list(range(first, first + count))
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.choice(BELOW_EPHEMERAL)
        if port not in chosen and is_free(port):
            chosen.append(port)
    return chosen


def is_free(port: int) -> bool:
    """Tell whether nothing listens there on any address."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly *size* bytes."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise OSError("the server closed the connection")
        data += part
    return data
