"""What a run has shown of the requirements: a row whose test failed, was skipped or did not run is not shown."""

from __future__ import annotations

import pytest

from scripts.shown import PAGE, shown, told

DEVICES, ROUTES = "tests/contract/test_devices.py::test_x", "tests/adapters/rest/test_routes.py::test_y"
ROW = f"| S1-10 | Registers | works | `waypost.domain` | `{DEVICES}`<br>`{ROUTES}` |  |"
BOTH = {f"{DEVICES}[memory]": ["passed"], f"{DEVICES}[sqlite-small]": ["passed"], ROUTES: ["passed"]}


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({}, ()),
        ({f"{DEVICES}[sqlite-small]": ["failed"]}, (DEVICES,)),
        ({f"{DEVICES}[memory]": ["skipped"]}, ()),
        ({f"{DEVICES}[memory]": ["skipped"], f"{DEVICES}[sqlite-small]": ["skipped"]}, (DEVICES,)),
        ({ROUTES: ["passed", "failed"]}, (ROUTES,)),
    ],
)
def test_a_row_is_shown_by_tests_that_all_passed_with_one_set_of_parameters_at_least(
    changed: dict[str, list[str]], missing: tuple[str, ...]
) -> None:
    """A store that is not there is skipped; one that failed is a failure, whatever the others say."""
    result = shown(ROW, BOTH | changed)
    assert (result.rows, result.unshown.get("S1-10", ())) == (1, missing)
    assert any("DEFECT: S1-10" in line for line in told(result)) == bool(missing)


@pytest.mark.parametrize(
    ("test", "is_real"),
    [
        ("tests/contract/test_devices.py::test_x[memory]", False),
        ("tests/contract/test_devices.py::test_x[postgres-two]", True),
        ("tests/journeys/test_kills.py::test_x", True),
        ("tests/unit/domain/test_retry.py::test_x[s1_exponential]", False),
    ],
)
def test_a_real_store_is_told_by_the_folder_or_the_parameter(test: str, is_real: bool) -> None:
    """A decision that needs none, and the memory, are listed beside."""
    row = f"| S1-10 | Registers | works | `waypost.domain` | `{test.partition('[')[0]}` |  |"
    assert shown(row, {test: ["passed"]}).unreal == (() if is_real else ("S1-10",))


def test_what_does_not_say_works_is_held_to_nothing() -> None:
    """And every row of the page that says it is read."""
    assert shown(ROW.replace("works", "partly"), {}).rows == 0
    page = PAGE.read_text(encoding="utf-8")
    assert shown(page, {}).rows == sum("| works |" in line for line in page.splitlines()) > 200


def test_what_only_the_long_forms_run_is_told_apart() -> None:
    """It did not fail, and it was not shown here."""
    result = shown(ROW, {test: outcome for test, outcome in BOTH.items() if test != ROUTES})
    assert (result.unshown, result.by_long_forms) == ({}, ("S1-10",))
    assert told(result)[0].startswith("0 of 1 ")
