"""Tests wait on signals: who sleeps says why, and no assertion is about how long something took."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.trees import ROOT

TESTS = ROOT / "tests"
SIMULATED = "tests.unit.http2.simulated"
"""Whoever imports it sleeps on a clock that jumps."""
JUMPING = "tests/simulation/"
"""Everybody there does."""
SLEEPS = {("asyncio", "sleep"), ("time", "sleep")}
CLOCKS = {("time", "monotonic"), ("time", "perf_counter"), ("time", "process_time")}


def calls(node: ast.AST, names: set[tuple[str, str]]) -> list[ast.Call]:
    """Find the calls of functions of these modules."""
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and isinstance(each.func.value, ast.Name)
        and (each.func.value.id, each.func.attr) in names
    ]


def unexplained_sleeps(source: str) -> list[int]:
    """Find the lines that sleep for a time without a comment, there or where their loop begins."""
    tree, lines = ast.parse(source), source.splitlines()
    explained = {
        line
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While) and "#" in lines[loop.lineno - 1]
        for line in range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    }
    return [
        call.lineno
        for call in calls(tree, SLEEPS)
        if not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
        and "#" not in lines[call.lineno - 1]
        and call.lineno not in explained
    ]


def timed_assertions(source: str) -> list[int]:
    """Find the assertions on a clock's reading, or on what was reckoned from one in the same function."""
    found: set[int] = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set(_timed(function))
    return sorted(found)


def _timed(function: ast.AST) -> Iterator[int]:
    timed: set[str] = set()
    for node in sorted(ast.walk(function), key=lambda each: getattr(each, "lineno", 0)):
        if isinstance(node, ast.Assign) and (calls(node.value, CLOCKS) or _names(node.value) & timed):
            timed |= {name for target in node.targets for name in _names(target)}
        elif isinstance(node, ast.Assert) and (calls(node.test, CLOCKS) or _names(node.test) & timed):
            yield node.lineno


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def sources(*words: str) -> dict[str, str]:
    """Read the tests that have one of these words in them."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(TESTS.rglob("*.py"))}
    return {path: text for path, text in texts.items() if any(word in text for word in words)}


def test_who_sleeps_says_why() -> None:
    """On the same line, or where the loop begins that asks again and again."""
    found = sources("sleep(")
    jumps = {path for path, text in found.items() if SIMULATED in text or path.endswith("/simulated.py")}
    jumps |= {path for path in found if path.startswith(JUMPING)}
    real = {path: text for path, text in found.items() if path not in jumps}
    assert [f"{path}:{n}" for path, text in real.items() for n in unexplained_sleeps(text)] == []


def test_no_assertion_is_about_how_long_something_took() -> None:
    """A busy machine takes longer; what is printed in a table may be measured."""
    found = sources(*(name for _, name in CLOCKS))
    assert [f"{path}:{n}" for path, text in found.items() for n in timed_assertions(text)] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("time.sleep(1)", [1]),
        ("time.sleep(1)  # the fault lasts so long", []),
        ("asyncio.sleep(0)", []),
        ("while waiting():  # nothing tells\n    time.sleep(0.1)", []),
        ("while waiting():\n    time.sleep(0.1)", [2]),
    ],
)
def test_a_sleep_that_is_planted_is_found(line: str, found: list[int]) -> None:
    assert unexplained_sleeps(line) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("    began = time.monotonic()\n    took = time.monotonic() - began\n    assert took < 1", [4]),
        ("    assert time.perf_counter() - began < 1", [2]),
        ("    took = time.monotonic()\n    table(took=took)\n    assert done", []),
    ],
)
def test_a_timed_assertion_that_is_planted_is_found(body: str, found: list[int]) -> None:
    assert timed_assertions(f"def test() -> None:\n{body}") == found
