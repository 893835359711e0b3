"""The supervisor: opens the listening socket, starts equal workers, and buries and replaces those that die.

Workers are started by exec and inherit what they need as file descriptors. They end themselves when the supervisor's
pipe closes, so that nothing of a dead supervisor lives on.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from waypost.domain.errors import ConfigurationError
from waypost.ports.peers import PROCESS_ENDED
from waypost.runtime import python
from waypost.runtime.peers import send_to
from waypost.runtime.reload_signal import hangups_are_heeded
from waypost.runtime.shares import TOPIC as SHARDS_TOPIC
from waypost.runtime.silence import Silence
from waypost.runtime.worker_slots import Presence, WorkerSlots, WorkerState
from waypost.telemetry import Event, Telemetry

SILENCE_S = 10.0
"""Seconds without a sign of life, while its supervisor ran, after which a worker is frozen and is killed."""
LOOK_S = 0.2
"""Seconds between two looks at workers while one is missing or not ready."""
CALM_LOOK_S = 0.5
"""Seconds between two looks at workers that are all ready; one that ends is told of at once."""
SHORT_LIFE_S = 2.0
BACKOFF_CAP_S = 5.0
WORKER_ENV = "WAYPOST_WORKER"
EX_CONFIG = 78
"""sysexits(3): the worker could not start because of the configuration; starting it again would not help."""
_WORDS_LIMIT = 2_000


class Inheritance(Struct, frozen=True):
    """The inheritance of a worker through its environment: its slot, and the descriptors."""

    slot: int
    listen_fd: int
    life_fd: int
    words_fd: int
    """The descriptor for why it could not start because of the configuration, in place of stderr: each would say it."""
    inbox_fd: int
    outbox_fds: dict[int, int]
    critical_slot: int | None = None
    """The slot of the critical worker, where there is one."""

    @property
    def is_critical(self) -> bool:
        """Whether this is the critical worker."""
        return self.slot == self.critical_slot


def inheritance() -> Inheritance | None:
    """Read what this process inherited from its supervisor; None for a process that has none."""
    text = os.environ.get(WORKER_ENV)
    return None if text is None else msgspec.json.decode(text, type=Inheritance, strict=False)


class _Child:
    """A slot and the process that fills it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.not_before_s = 0.0
        self.backoff_s = 0.0
        self.was_ready = False


class Supervisor:
    """The supervisor of *count* workers, run by *command* until told to stop."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        listener: socket.socket,
        board_path: Path,
        telemetry: Telemetry,
        on_death: Callable[[int], None],
        *,
        with_critical: bool = False,
    ) -> None:
        """Create the supervisor; *on_death* is called with the process id of each worker that died.

        *with_critical*, there is one worker more, in the last slot, for the critical lane.
        """
        self._critical_slot = count if with_critical else None
        count += with_critical
        self._command = command
        self._listener = listener
        self._worker_slots = WorkerSlots(board_path)
        self._telemetry = telemetry
        self._on_death = on_death
        self._pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        self._children = [_Child() for _ in range(count)]
        self._life_read, self._life_write = os.pipe()
        self._words_read, self._words_write = os.pipe()
        self._silence = Silence(time.monotonic())
        self._stopping = False
        self._announced = False

    def run(self, announce: Callable[[], None], drain_timeout_s: float) -> None:
        """Supervise until SIGTERM or SIGINT; *announce* is called once every worker is ready.

        ConfigurationError, with the words of the first, where workers cannot start because of the configuration.
        """
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if hangups_are_heeded():
            signal.signal(signal.SIGHUP, self._pass_on)
        try:
            while not self._stopping:
                self._look(announce)
                if select.select([wake_read], [], [], CALM_LOOK_S if self._is_calm else LOOK_S)[0]:
                    os.read(wake_read, 4096)
        finally:
            self._stop_children(drain_timeout_s)

    @property
    def _is_calm(self) -> bool:
        return all(child.process is not None and child.was_ready for child in self._children)

    def _on_stop(self, *_: object) -> None:
        self._stopping = True

    def _pass_on(self, number: int, _: object) -> None:
        """Pass a signal on to workers that know what it means; the others are still about to read the files first."""
        for child in self._children:
            if child.process is not None and child.was_ready:
                child.process.send_signal(number)

    def _look(self, announce: Callable[[], None]) -> None:
        """Look after the workers once: bury the dead, kill the frozen, start what is missing."""
        now_s = time.monotonic()
        for slot, child in enumerate(self._children):
            if child.process is not None and child.process.poll() is not None:
                if child.process.returncode == EX_CONFIG and not child.was_ready:
                    raise ConfigurationError("", _first_words(self._words_read))
                self._bury(slot, child, now_s)
            if child.process is None and now_s >= child.not_before_s and not self._stopping:
                self._start(slot, child, now_s)
        present = self._worker_slots.present()
        self._kill_frozen(present, now_s)
        ready = {each.slot for each in present if each.state is WorkerState.READY}
        for slot in ready:
            self._children[slot].was_ready = True
        if len(ready) == len(self._children) and not self._announced:
            self._announced = True
            announce()

    def _start(self, slot: int, child: _Child, now_s: float) -> None:
        inbox, _ = self._pairs[slot]
        outboxes = {other: pair[1].fileno() for other, pair in enumerate(self._pairs) if other != slot}
        given = Inheritance(
            slot,
            self._listener.fileno(),
            self._life_read,
            self._words_write,
            inbox.fileno(),
            outboxes,
            self._critical_slot,
        )
        child.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command,
            env=os.environ | {WORKER_ENV: msgspec.json.encode(given).decode()},
            pass_fds=(given.listen_fd, given.life_fd, given.words_fd, given.inbox_fd, *outboxes.values()),
            process_group=0,  # out of reach of Ctrl-C; sessions of their own would void what is nice (0092)
        )
        child.started_s = now_s
        child.was_ready = False
        self._telemetry.event(Event.WORKER_STARTED, slot=slot, pid=child.process.pid)

    def _bury(self, slot: int, child: _Child, now_s: float) -> None:
        """Turn what a dead worker had noted into suspects, and let the others take its shards at once."""
        assert child.process is not None
        noted = self._worker_slots.bury(slot)
        self._telemetry.event(
            Event.WORKER_DIED, slot=slot, pid=child.process.pid, status=child.process.returncode, noted=noted
        )
        pid = child.process.pid
        self._on_death(pid)
        child.process = None
        short = now_s - child.started_s < SHORT_LIFE_S
        child.backoff_s = min(max(child.backoff_s * 2, 0.1), BACKOFF_CAP_S) if short else 0.0
        child.not_before_s = now_s + child.backoff_s
        for other, (_, outbox) in enumerate(self._pairs):
            if other != slot:
                send_to(outbox, PROCESS_ENDED, b"%d" % pid)
                send_to(outbox, SHARDS_TOPIC)

    def _kill_frozen(self, present: Sequence[Presence], now_s: float) -> None:
        silent_s = self._silence.look(present, now_s)
        for presence in present:
            child = self._children[presence.slot] if presence.slot < len(self._children) else None
            if child is None or child.process is None or child.process.pid != presence.pid:
                continue
            if silent_s[presence.slot] > SILENCE_S:
                self._telemetry.event(Event.WORKER_FROZEN, slot=presence.slot, pid=presence.pid)
                child.process.kill()

    def _stop_children(self, drain_timeout_s: float) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline_s = time.monotonic() + drain_timeout_s + 5.0
        for process in running:
            try:
                process.wait(max(0.0, deadline_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._worker_slots.close()


def say_why(given: Inheritance, wrong: ConfigurationError) -> int:
    """Tell the supervisor why this worker cannot start; return the exit status to end with."""
    os.write(given.words_fd, str(wrong).encode()[:_WORDS_LIMIT] + b"\0")
    return EX_CONFIG


def _first_words(words_fd: int) -> str:
    """Read what the first worker that could not start said; it has ended, so that it has said all."""
    return os.read(words_fd, _WORDS_LIMIT).partition(b"\0")[0].decode(errors="replace")


def worker_command(config_path: Path | None) -> list[str]:
    """Return the command that starts a worker: this interpreter, the composition root, the same configuration."""
    command = [*python.MODULE, "waypost.bootstrap"]
    return command if config_path is None else [*command, str(config_path)]


def bury_predecessors(board_path: Path) -> None:
    """End workers that a dead supervisor left frozen (the others end themselves), and read their notes.

    A frozen one holds the listening port, too: call this before the port is asked for.
    """
    worker_slots = WorkerSlots(board_path)
    for presence in worker_slots.present():
        if _is_worker(presence.pid):
            os.kill(presence.pid, signal.SIGKILL)
        worker_slots.bury(presence.slot)
    worker_slots.close()


def _is_worker(pid: int) -> bool:
    try:
        return b"waypost.bootstrap" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
