"""Whether requests make sense now, and how each part is."""

from __future__ import annotations

from collections.abc import Mapping

from waypost.bootstrap.stacks import Carrier
from waypost.config import SourceName
from waypost.domain.credential import CredentialId
from waypost.entrypoints.rest.api import Readiness
from waypost.entrypoints.streams.door import StreamDoor
from waypost.runtime.board import Board, WorkerState
from waypost.runtime.crew import Crew
from waypost.runtime.gates import Gates
from waypost.runtime.keyring import Keyring
from waypost.runtime.supervisor import SILENCE_S
from waypost.runtime.worker import Worker


def readiness_of(
    carrier: Carrier,
    crew: Crew,
    worker: Worker,
    board: Board,
    streams: Mapping[SourceName, StreamDoor],
    keyring: Keyring,
) -> Readiness:
    """What this worker knows of the store and the providers, and what the board says of every worker."""
    now_s = crew.clock.monotonic()
    checks = {"store": carrier.fault() or "ok"}
    for presence in board.present():
        silent = now_s - presence.heartbeat_s > SILENCE_S / 2
        checks[f"worker {presence.slot}"] = "silent" if silent else _WORDS[presence.state]
    is_ready = all(word == "ok" for word in checks.values()) and carrier.takes_requests()
    checks |= carrier.says()
    if worker.nobody_delivers:
        checks["delivery"] = "no worker: what is accepted waits"
    checks |= {f"source {name}": door.fault or "ok" for name, door in streams.items()}
    for name, sender in crew.senders.items():
        health = sender.health()
        checks[f"provider {name}"] = sending_by(name, crew.gates) if health.ok else health.why or "not ok"
    checks |= {f"credential {name}": why for name, why in keyring.says().items()}
    return Readiness(is_ready, checks)


def sending_by(credential: CredentialId, gates: Gates) -> str:
    """Say ``ok``, or which breakers are open and what opened them."""
    circuit = gates.open_circuit(credential)
    if circuit is not None:
        return f"waits, but for probes ({circuit.opened_by})"
    waiting = ", ".join(f"{part.scope} ({part.opened_by})" for part in gates.open_scopes(credential))
    return f"ok, but for {waiting}" if waiting else "ok"


_WORDS = {
    WorkerState.GONE: "gone",
    WorkerState.STARTING: "starting",
    WorkerState.READY: "ok",
    WorkerState.DEGRADED: "degraded",
    WorkerState.DRAINING: "draining",
}
