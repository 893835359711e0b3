"""The readiness of a worker: whether requests make sense now, and how each part is."""

from __future__ import annotations

from collections.abc import Mapping

from waypost.bootstrap.stacks import StackParts
from waypost.config import SourceName
from waypost.domain.credential import CredentialId
from waypost.entrypoints.rest.api import Readiness
from waypost.entrypoints.streams.stream_intake import StreamIntake
from waypost.runtime.credential_reload import CredentialReloader
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.gates import Gates
from waypost.runtime.supervisor import SILENCE_S
from waypost.runtime.worker import Worker
from waypost.runtime.worker_slots import WorkerSlots, WorkerState


def readiness_of(
    stack_parts: StackParts,
    context: DeliveryContext,
    worker: Worker,
    worker_slots: WorkerSlots,
    streams: Mapping[SourceName, StreamIntake],
    reloader: CredentialReloader,
) -> Readiness:
    """Judge whether this worker is ready, by its store and providers, and by the slots of all workers."""
    now_s = context.clock.monotonic()
    checks = {"store": stack_parts.fault() or "ok"}
    for presence in worker_slots.present():
        silent = now_s - presence.heartbeat_s > SILENCE_S / 2
        checks[f"worker {presence.slot}"] = "silent" if silent else _WORDS[presence.state]
    is_ready = all(word == "ok" for word in checks.values()) and stack_parts.takes_requests()
    checks |= stack_parts.says()
    if worker.nobody_delivers:
        checks["delivery"] = "no worker: what is accepted waits"
    checks |= {f"source {name}": intake.fault or "ok" for name, intake in streams.items()}
    for name, sender in context.senders.items():
        health = sender.health()
        checks[f"provider {name}"] = sending_by(name, context.gates) if health.ok else health.why or "not ok"
    checks |= {f"credential {name}": why for name, why in reloader.says().items()}
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
