"""The whole pipeline, simulated from seeds: no promise breaks, a seed says the same again, and faults are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.simulation.plants import PLANTS

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 500
MOST_SEEDS = 5_000
WORTH_IT = ("killed", "freeze", "cut", "away", "stop", "late outcomes refused", "repeated for a lost worker")


def simulate(*asked: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    """Run the simulation in a process of its own: it changes the paces of the runtime, and closes nothing."""
    command = [sys.executable, "-m", "tests.simulation", *asked]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_no_seed_breaks_a_promise() -> None:
    """What is lived through is worth it: workers die, stand still and are cut off, and providers do all they can."""
    ended = simulate("--seeds", str(SEEDS))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lived = {name: int(n.replace(",", "")) for n, name in re.findall(r"([\d,]+) ([a-z ]+)", ended.stdout)}
    assert lived["broken"] == 0
    assert min(lived[name] for name in WORTH_IT) > 20
    assert ended.stderr == ""


def test_a_seed_comes_to_the_same_whatever_else_is_by_chance() -> None:
    first, second = (simulate("--seeds", "30", "--digests", hash_seed=seed).stdout for seed in ("1", "2"))
    assert len(first.splitlines()) > 30
    assert first.splitlines()[:30] == second.splitlines()[:30]


def test_each_planted_fault_is_found() -> None:
    """Most within a few seeds; what takes a worker that stands still at one certain moment, within some hundred."""
    ended = simulate("--seeds", str(MOST_SEEDS), "--plants")
    assert ended.stdout.endswith(f"{len(PLANTS)} faults planted, 0 missed\n"), ended.stdout + ended.stderr
    assert ended.returncode == 0
