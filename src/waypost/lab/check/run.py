"""A whole check: the lab, the service under test if it is one, the cases, and the report."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from waypost.lab.check.cases import CASES, GATEWAYS, Case
from waypost.lab.check.course import Course, Patience
from waypost.lab.check.judgement import Result
from waypost.lab.check.sender import COMMAND_S, Asked, CaseSender, Command, Service, environment_of
from waypost.lab.lab import Lab
from waypost.lab.settings import LabSettings

LOG, TARGETS, SERVICE_OUTPUT = "check.log", "targets.json", "service.out"


class CheckOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order that says what to check, and how to make the sender send."""

    command: str | None = None
    """The command to run for every round; without one a person is asked to send."""
    service: str | None = None
    """The command to run from before the first case to after the last."""
    sender: CaseSender | None = None
    """Who sends in place of a command or a person."""
    cases: tuple[str, ...] = ()
    """The names of the cases; empty is all."""
    gateways: tuple[str, ...] = GATEWAYS
    patience: Patience = Patience()


class CheckReport(msgspec.Struct, frozen=True):
    """The results of a sender in all cases."""

    results: list[Result]

    def count(self, verdict: str) -> int:
        """Count the cases that ended with *verdict*, over all gateways."""
        return sum(result.verdict == verdict for result in self.results)

    @property
    def good(self) -> bool:
        """Whether nothing failed, and something was tried."""
        return not self.count("failed") and self.count("passed") > 0


def chosen(order: CheckOrder) -> list[Case]:
    """Return the cases an order names. Raises ValueError for an unknown name, of a case or a gateway."""
    elsewhere = set(order.gateways) - set(GATEWAYS)
    if elsewhere:
        raise ValueError(f"no gateway {', '.join(sorted(elsewhere))}; there are {', '.join(GATEWAYS)}")
    unknown = set(order.cases) - {case.name for case in CASES}
    if unknown:
        raise ValueError(f"no case {', '.join(sorted(unknown))}; there are {', '.join(case.name for case in CASES)}")
    return [case for case in CASES if not order.cases or case.name in order.cases]


def run_check(
    settings: LabSettings, order: CheckOrder, *, ready: Callable[[dict[str, str]], None], done: Callable[[Result], None]
) -> CheckReport:
    """Check a sender; call *ready* with the environment when the lab stands, *done* with each result as it comes."""
    return asyncio.run(_run(settings, order, ready, done))


async def _run(
    settings: LabSettings, order: CheckOrder, ready: Callable[[dict[str, str]], None], done: Callable[[Result], None]
) -> CheckReport:
    cases, results = chosen(order), []
    lab = Lab(settings)
    await lab.start()
    environment = environment_of(settings, lab.urls)
    environment["LAB_SERVICE_OUTPUT"] = str((settings.directory / SERVICE_OUTPUT).resolve())
    ready(environment)
    with (settings.directory / LOG).open("wb") as log:
        service = Service(order.service, Path(environment["LAB_SERVICE_OUTPUT"]), log) if order.service else None
        sender = order.sender or _sender_of(order, log)
        course = Course(
            lab, sender, environment, targets_file=settings.directory / TARGETS, gateways=order.gateways,
            patience=order.patience,
        )  # fmt: skip
        try:
            if service is not None:
                await service.start(environment)
            async for result in course.run(cases):
                results.append(result)
                done(result)
        finally:
            if service is not None:
                await service.stop()
            await lab.stop()
    return CheckReport(_in_order(results, cases))


def _sender_of(order: CheckOrder, log: BinaryIO) -> CaseSender:
    if order.command is None:
        return Asked()
    return Command(order.command, log, timeout_s=max(order.patience.for_all_s, COMMAND_S))


def _in_order(results: Sequence[Result], cases: Sequence[Case]) -> list[Result]:
    """Sort the results by case, then by gateway."""
    places = {case.name: number for number, case in enumerate(cases)}
    return sorted(results, key=lambda result: (places[result.case], GATEWAYS.index(result.gateway)))
