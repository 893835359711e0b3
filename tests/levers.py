"""What the levers of a service do, shown on one of its nodes."""

from __future__ import annotations

from scripts.services import processes
from scripts.services.service import Service


def comes_back(service: Service, number: int) -> None:
    """Killed, nothing of the node is left; it starts again on its data, and does so after a clean end."""
    before = service.node(number).pid
    service.kill(number)
    assert service.node(number).pid is None
    service.start(number)
    assert service.node(number).pid not in {None, before}
    service.stop(number)
    assert service.node(number).pid is None
    service.start(number)
    assert service.ready(service.node(number))


def stands_still(service: Service, number: int) -> None:
    """Frozen, all processes of the node stand; thawed, it serves."""
    pid = service.node(number).pid
    assert pid is not None
    service.freeze(number)
    assert states(pid) == {"T"}
    service.thaw(number)
    service.wait_ready(service.node(number))
    assert "T" not in states(pid)


def states(pid: int) -> set[str]:
    """How the processes of a server are (proc(5)): T is stopped."""
    return {facts.state for each in processes.tree(pid) if (facts := processes.stat(each)) is not None}
