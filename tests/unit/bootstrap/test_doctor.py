"""What ``waypost doctor`` reads of a machine, and that the pages exist to which it sends people."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from waypost.bootstrap.doctor.clock import beside
from waypost.bootstrap.doctor.findings import State, size, span
from waypost.bootstrap.doctor.machine import look_at_machine, memory_limit

ROOT = Path(__file__).parents[3]
PAGE = re.compile(r"(docs/[\w/-]+\.md)(?:#([\w-]+))?")
GIB = 1 << 30


def machine(folder: Path, **files: str) -> Path:
    """What the kernel shows of a machine, as files: ``__`` in a name is a folder below."""
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_the_smallest_limit_on_memory_counts(tmp_path: Path) -> None:
    """A group below another one, both below the machine."""
    root = machine(
        tmp_path,
        proc__meminfo=f"MemTotal:       {8 * GIB // 1024} kB\n",
        proc__self__cgroup="0::/system.slice/waypost\n",
    )
    assert memory_limit(root) == 8 * GIB
    outer = root / "sys/fs/cgroup/system.slice"
    (outer / "waypost").mkdir(parents=True)
    (outer / "waypost/memory.max").write_text("max\n")
    (outer / "memory.max").write_text(f"{GIB}\n")
    assert memory_limit(root) == GIB
    (outer / "waypost/memory.max").write_text(f"{GIB // 2}\n")
    assert memory_limit(root) == GIB // 2


def test_a_short_queue_of_connections_and_little_memory_are_said(tmp_path: Path) -> None:
    root = machine(
        tmp_path, proc__meminfo="MemTotal: 100000 kB\n", proc__sys__net__core__somaxconn="128\n", proc__self__cgroup=""
    )
    said = {each.subject: each for each in look_at_machine(None, root)}
    assert said["memory"].state is State.WARNING
    assert said["connections not yet accepted"].state is State.WARNING
    assert "net.core.somaxconn=2048" in said["connections not yet accepted"].do


def test_what_a_system_does_not_say_is_no_fault(tmp_path: Path) -> None:
    said = {each.subject: each.state for each in look_at_machine(None, tmp_path)}
    assert said["memory"] == said["connections not yet accepted"] == State.SKIPPED


@pytest.mark.parametrize(
    ("ahead_s", "state", "said"),
    [
        (0.4, State.OK, "0.4 s apart"),
        (-30, State.WARNING, "ours is 30 s ahead of it"),
        (600, State.PROBLEM, "ours is 10 minutes behind it"),
    ],
)
def test_a_clock_that_is_off_says_which_way(ahead_s: float, state: State, said: str) -> None:
    found = beside("somebody", ahead_s)
    assert (found.state, found.saw) == (state, said)
    assert bool(found.do) is (state is not State.OK)


def test_sizes_and_spans_are_said_as_people_say_them() -> None:
    assert [size(n) for n in (0, 1_500, 250_000_000, 3e12, 5e15)] == [
        "0 bytes",
        "1.5 KB",
        "250 MB",
        "3.0 TB",
        "5000.0 TB",
    ]
    assert [span(n) for n in (3, 130, 7_300, 200_000)] == ["3 s", "2 minutes", "2 hours", "2 days"]


def test_every_page_that_it_names_exists() -> None:
    """With its section."""
    named = set()
    for file in (ROOT / "src/waypost/bootstrap/doctor").glob("*.py"):
        named |= set(PAGE.findall(file.read_text().replace("{page}", "postgres")))
    assert len(named) > 10
    for page, section in named:
        heads = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
        known = {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}
        assert not section or section in known, f"{page}#{section}"
