"""The cost of a scenario: CPU of the product, of the gateway and of everybody else on the machine, and memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

from waypost.bench.machine import CORES, busy_s, calibration_us, ours_s
from waypost.bench.programs import cpu_s
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack


@dataclass(frozen=True)
class Taken:
    """The cost of a time that was watched."""

    deliveries: int
    own_us: float
    """Waypost's CPU of a delivery."""
    gateway_us: float
    loop_us: float
    """CPU of a turn of the calibration loop, before and after."""
    servers_us: dict[str, float]
    others: float
    """The share of the cores that neither the product nor what measures it had."""
    before_mib: float
    after_mib: float

    def rows(self, scenario: str) -> list[Row]:
        """Return the figures as rows of the table."""
        beside = f"loop {self.loop_us:.1f}; gateway {self.gateway_us:.1f}"
        return [
            row(scenario, "Waypost's CPU a delivery", self.own_us, "µs", beside, self.own_us / self.loop_us),
            *(row(scenario, f"{name}'s CPU a delivery", us, "µs") for name, us in self.servers_us.items()),
            row(scenario, "memory of all processes, after", self.after_mib, "MiB", f"{self.before_mib:.0f} before",
                self.after_mib / self.before_mib),
            row(scenario, "cores that others had meanwhile", 100 * self.others, "%"),
        ]  # fmt: skip


class Watch:
    """CPU and memory from now on."""

    def __init__(self, stack: BenchStack) -> None:
        self._stack = stack
        self._before_mib = stack.memory_mib()
        self._loop_us = calibration_us()
        self._deliveries = stack.gateway.total("accepted", "dead")
        self._gateway_s, self._own_s, self._servers_s = cpu_s(stack.gateway.pid), stack.cpu_s(), stack.base.cpu_s()
        self._measuring_s, self._busy_s, self._began_s = ours_s(), busy_s(), time.perf_counter()

    def taken(self) -> Taken:
        """Return what it was until now."""
        stack = self._stack
        lasted_s = time.perf_counter() - self._began_s
        own_s, gateway_s = stack.cpu_s() - self._own_s, cpu_s(stack.gateway.pid) - self._gateway_s
        servers_s = {name: after - self._servers_s[name] for name, after in stack.base.cpu_s().items()}
        together_s = own_s + gateway_s + sum(servers_s.values()) + ours_s() - self._measuring_s
        deliveries = stack.gateway.total("accepted", "dead") - self._deliveries
        each_us = 1e6 / max(deliveries, 1)
        return Taken(
            deliveries,
            own_s * each_us,
            gateway_s * each_us,
            (self._loop_us + calibration_us()) / 2,
            {name: spent * each_us for name, spent in servers_s.items()},
            max(busy_s() - self._busy_s - together_s, 0.0) / lasted_s / CORES,
            self._before_mib,
            stack.memory_mib(),
        )
