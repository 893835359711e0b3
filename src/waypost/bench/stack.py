"""Waypost as its users run it, before the bench's own gateway: child processes, their CPU time and their memory."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from waypost.bench.programs import GatewayProgram, Load, Programs, cpu_s, gateway, peak_mib, resident_mib
from waypost.bench.registry import APP, devices, iphones, register
from waypost.bench.stores import FILE, Base, Stands, connected, embedded
from waypost.lab import credentials
from waypost.runtime.python import MODULE

CONFIG = "waypost.yaml"


class BenchStack:
    """A gateway and a serving Waypost in a folder of their own."""

    def __init__(
        self,
        programs: Programs,
        gateway: GatewayProgram,
        base: Base,
        config: Path,
        pid: int,
        url: str,
        keys: dict[str, str],
    ) -> None:
        self._programs = programs
        self.config = config
        self.gateway = gateway
        self.base = base
        self.url = url
        self.keys = keys
        """The keys, by app."""
        self.key = keys[APP]
        self.pid = pid

    def load(self, key: str = "", **wishes: object) -> Load:
        """Begin to submit, with the key of the first app or another."""
        return Load(self._programs, self.url, key or self.key, **wishes)

    def cpu_s(self) -> float:
        """Measure CPU seconds so far of all processes of Waypost."""
        return sum(cpu_s(pid) for pid in self._family())

    def memory_mib(self) -> float:
        """Measure resident memory of all processes of Waypost."""
        return sum(resident_mib(pid) for pid in self._family())

    def largest_mib(self) -> float:
        """Measure the resident memory of the largest process of Waypost."""
        return max(resident_mib(pid) for pid in self._family())

    def peak_mib(self) -> float:
        """Measure the most memory that was resident of any one process of Waypost."""
        return max(peak_mib(pid) for pid in self._family())

    def _family(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]


@contextmanager
def running(  # noqa: PLR0913 - each is one thing that a bench may ask of a stack
    programs: Programs,
    workers: int,
    users: int,
    *,
    web: bool = True,
    vips: int = 0,
    apps: tuple[str, ...] = (APP,),
    stands: Stands = embedded,
    history: Callable[[Path], None] = lambda _: None,
    command: Sequence[str] = ("waypost.cli",),
    critical_worker: bool = False,
) -> Iterator[BenchStack]:
    """Start both, with *users* users in the registry of each app, *vips* with one iPhone, and what *history* adds.

    Waypost stands on SQLite, whose file *history* is given, or on what *stands* makes. *command* is the module that is
    run, with what it takes before ``serve``.
    """
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name, ExitStack() as exits:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as a user of its own
        base = stands(folder, exits)
        credentials.write_missing(folder, "bench")
        other_side = exits.enter_context(gateway(programs, folder / credentials.SERVER))
        credentials.write_service_account(folder, "bench", f"{other_side.url}/token")
        configuration = _configuration(folder, other_side.url, workers, dict.fromkeys(apps, base.app)) | base.settings
        configuration["critical_worker"] = critical_worker
        (folder / CONFIG).write_text(yaml.safe_dump(configuration))
        keys = {app: _key(folder, app) for app in apps}
        with connected(base.url) as connection:
            for app in apps:
                register(connection, devices(other_side.url, users, web=web, app=app))
            register(connection, iphones(vips))
        history(folder / FILE)
        with serving(folder, command) as (pid, url):
            yield BenchStack(programs, other_side, base, folder / CONFIG, pid, url, keys)


def _configuration(folder: Path, endpoint: str, workers: int, apps: dict[str, dict[str, Any]]) -> dict[str, Any]:
    trust = {"ca_file": str(folder / credentials.CA)}
    apns: dict[str, Any] = {"key_file": str(folder / credentials.APNS_KEY), "key_id": "ABCDE12345"}
    apns |= {"team_id": "FGHIJ67890", "topic": "com.example.demo", "endpoint": endpoint}
    fcm: dict[str, Any] = {"service_account_file": str(folder / credentials.SERVICE_ACCOUNT), "endpoint": endpoint}
    everything = {"capacity": 10**9, "refill_per_s": 10**9, "ramp_s": 0}  # counted; Google's allowance is not measured
    push: dict[str, Any] = {"vapid_private_key_file": str(folder / credentials.VAPID_KEY)}
    push |= {"subject": "mailto:ops@example.com", "allow_endpoints": [endpoint]}
    return {
        "listen": "127.0.0.1:0",
        "workers": workers,
        "log": {"level": "warning"},
        "apps": {
            app: {
                "apns": apns | trust,
                "fcm": fcm | trust,
                "webpush": push | trust,
                "rates": {"fcm": everything},
                **more,
            }
            for app, more in apps.items()
        },
    }


def _key(folder: Path, app: str) -> str:
    command = [*MODULE, "waypost.cli", "keys", "create", "--app", app, "--caller", "bench"]
    made = subprocess.run([*command, "--config", str(folder / CONFIG)], check=True, capture_output=True, text=True)
    return made.stdout.strip().splitlines()[-1].strip()


@contextmanager
def serving(folder: Path, module: Sequence[str] = ("waypost.cli",)) -> Iterator[tuple[int, str]]:
    """Serve what ``waypost.yaml`` in *folder* says, by the *module* that is run; yield the process and its URL."""
    log = folder / "serve.log"
    command = [*MODULE, *module, "serve", "--config", str(folder / CONFIG), "--json"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"Waypost does not start: {log.read_text()[-2000:]}")
        yield process.pid, json.loads(line)["url"]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


class StoreBalance:
    """The store's account of everything."""

    def __init__(self, stack: BenchStack) -> None:
        counted = "SELECT status, count(*) FROM {table} GROUP BY status"
        to_gateways = "receipt WHERE channel IS NULL OR channel <> 'inapp'"  # what no gateway takes is not compared
        with connected(stack.base.url, read_only=True) as connection:
            self.notifications = dict(connection.execute(counted.format(table="notification")).fetchall())
            self.receipts = dict(connection.execute(counted.format(table=to_gateways)).fetchall())

    @property
    def accepted(self) -> int:
        """The number of notifications, without the records of duplicates."""
        return sum(count for status, count in self.notifications.items() if status != "deduplicated")

    @property
    def open(self) -> int:
        """The number of notifications without a final status."""
        return int(self.notifications.get("pending", 0))


def until_quiet(stack: BenchStack, submitted: int, timeout_s: float = 120.0) -> StoreBalance:
    """Wait until everything submitted is on the ledger, which may come later, and final.

    TimeoutError where nothing changes for so long and it is not.
    """
    until = time.monotonic() + timeout_s
    seen, before = -1, StoreBalance(stack)
    while time.monotonic() < until:
        total = stack.gateway.total("accepted", "dead", "throttled")
        quiet, seen = total == seen, total
        if quiet:
            ledger = StoreBalance(stack)
            if not ledger.open and ledger.accepted >= submitted:
                return ledger
        if not quiet or ledger.notifications != before.notifications:
            until = time.monotonic() + timeout_s
            before = ledger if quiet else before
        time.sleep(0.25)  # quiet is that nothing came for so long
    raise TimeoutError(f"of {submitted:,} nothing has changed for {timeout_s:g} s: {before.notifications}")


def settled(stack: BenchStack, submitted: int, known: int = 0) -> StoreBalance:
    """Wait until everything submitted is final; AssertionError where store and gateway then disagree.

    *known* were in the store from the start, finished, with two receipts each.
    """
    ledger = until_quiet(stack, submitted + known)
    _balance(stack, ledger, submitted + known, known * 2)
    return ledger


def _balance(stack: BenchStack, ledger: StoreBalance, submitted: int, sent_before: int) -> None:
    """Check that nothing is lost and nothing sent twice: one final status each, one receipt for each answer."""
    assert ledger.accepted == submitted, (ledger.notifications, submitted)
    counts = stack.gateway.counts()
    accepted, dead = stack.gateway.total("accepted"), stack.gateway.total("dead")
    assert ledger.receipts.get("sent", 0) - sent_before == accepted, (ledger.receipts, counts)
    assert ledger.receipts.get("failed", 0) == dead, (ledger.receipts, counts)
    marked = counts["apns"]["accepted"] + counts["fcm"]["accepted"]
    assert counts["apns"]["deliveries"] + counts["fcm"]["deliveries"] == marked, counts
