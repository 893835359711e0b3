"""Each contract test of Work names the promise it needs, so that it runs on every stack that keeps it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.trees import ROOT
from waypost.ports.promises import Promise

SUITES = sorted((ROOT / "tests" / "contract").glob("test_work_*.py"))


def promises_in(nodes: list[ast.expr]) -> set[str]:
    """Find the promises that marks name."""
    return {
        argument.attr
        for node in nodes
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "promise"
        for argument in call.args
        if isinstance(argument, ast.Attribute)
    }


def needs(source: str) -> Iterator[tuple[str, set[str]]]:
    """Name each test of a module with what it needs itself, or all of its module needs."""
    tree = ast.parse(source)
    marks = [each.value for each in tree.body if isinstance(each, ast.Assign) and _is_marks(each)]
    for each in tree.body:
        if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef) and each.name.startswith("test_"):
            yield each.name, promises_in(marks) | promises_in(each.decorator_list)


def _is_marks(assigned: ast.Assign) -> bool:
    return [each.id for each in assigned.targets if isinstance(each, ast.Name)] == ["pytestmark"]


def test_every_contract_test_of_work_names_a_promise() -> None:
    assert SUITES
    found = [(suite.name, test) for suite in SUITES for test, needed in needs(suite.read_text()) if not needed]
    assert found == []


def test_every_promise_is_held_by_a_test() -> None:
    held = {each for suite in SUITES for _, needed in needs(suite.read_text()) for each in needed}
    assert held == {each.name for each in Promise}


def test_a_test_without_a_promise_is_found() -> None:
    planted = "async def test_a(): ...\n@promise(Promise.KEEPS_TIME)\nasync def test_b(): ...\n"
    assert dict(needs(planted)) == {"test_a": set(), "test_b": {"KEEPS_TIME"}}
    planted = "pytestmark = [pytest.mark.asyncio, promise(Promise.CANCELS)]\nasync def test_a(): ...\n"
    assert dict(needs(planted)) == {"test_a": {"CANCELS"}}
