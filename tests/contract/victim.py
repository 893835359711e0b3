"""The process that is killed: plays a scenario on a database and ends itself before the statement it was told."""

from __future__ import annotations

import asyncio
import os
import signal
from multiprocessing.connection import Connection
from typing import NamedTuple

from tests.contract.bench import Bench
from tests.contract.claims import ClaimsUnderTest
from tests.contract.rollup_scenarios import ROLLING_UP
from tests.contract.scenarios import SCENARIOS
from tests.contract.schedule_scenarios import SCHEDULED
from tests.contract.sql import SqlUnderTest
from waypost.bootstrap.features import tables
from waypost.stores.sql.settings import is_postgres

tables()  # imports the features before victims are forked: each would need 0.2 s of CPU for that
ANSWER = "the answer"
"""The step after COMMIT has returned: nobody has been told yet."""


class Executioner:
    """Counts the steps of the writer, and kills the process with SIGKILL before step *n*, having said which it was."""

    def __init__(self, n: int, says: Connection) -> None:
        self._n = n
        self._says = says
        self._step = 0

    def sees(self, statement: str) -> None:
        """One step of the writer is about to be made."""
        self._step += 1
        if self._step == self._n:
            self._says.send(statement)
            os.kill(os.getpid(), signal.SIGKILL)


class Place(NamedTuple):
    """Where the data are, perhaps with routing *apart* from sending."""

    url: str
    apart: bool = False

    def under_test(self) -> SqlUnderTest:
        """What is there."""
        return ClaimsUnderTest(self.url, apart=self.apart) if is_postgres(self.url) else SqlUnderTest(self.url)


def play(place: Place, name: str, n: int, says: Connection) -> None:
    """Play scenario *name*, to be killed before step *n*; returns when it had fewer steps."""
    asyncio.run(_play(place.under_test(), name, Executioner(n, says)))


async def _play(under_test: SqlUnderTest, name: str, executioner: Executioner) -> None:
    await under_test.open()
    (worker,) = await under_test.open_workers(1)
    bench = Bench(under_test, worker)
    scenario = (SCENARIOS | ROLLING_UP | SCHEDULED)[name]
    await scenario.begin(bench)
    under_test.watch_writer(worker, executioner.sees, lambda: executioner.sees(ANSWER))
    await scenario.play(bench)
    await under_test.close()
