"""The web client without a browser: its types, its sizes, and what it decides."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.shows import shows
from tests.web.report import Report


@pytest.mark.parametrize("script", ["types", "size"])
def test_the_types_hold_and_what_pages_load_is_small_and_up_to_date(sdk: Path, script: str) -> None:
    """``npm run build`` writes what `waypost serve` hands out."""
    ended = subprocess.run(["npm", "run", "--silent", script], cwd=sdk, capture_output=True, text=True, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_lock_names_no_registry(sdk: Path) -> None:
    """Where packages come from is the business of each machine."""
    assert not re.findall(r'"resolved": "http[^"]*"', (sdk / "package-lock.json").read_text())


@shows("S3-132")
def test_every_test_of_the_logic_passes(logic: Report) -> None:
    """Token sync, parsing of messages, the state of the list, and retries."""
    assert not logic.broken
    logic.passed(*logic.results)
    assert len(logic.results) > 25


@shows("S3-01")
def test_without_permission_nothing_is_called(logic: Report) -> None:
    logic.passed(
        "without permission nothing is called and nothing is complained of",
        "enabling asks, subscribes, and registers the new token",
    )


@shows("S3-05")
def test_a_registration_is_tried_three_times(logic: Report) -> None:
    logic.passed("a registration is tried three times, with waits of 1 s and 2 s")


@shows("S3-06", "S3-07")
def test_a_token_that_could_not_be_registered_is_kept_until_it_is(logic: Report) -> None:
    logic.passed(
        "what could not be registered is kept, sent at the next start, and then forgotten",
        "a browser's token that could not be registered is sent at the next start, and then forgotten",
    )


@shows("S3-08")
def test_a_registration_says_what_is_known_of_the_device(logic: Report) -> None:
    logic.passed("a start asks nobody, and registers the token that there is with what is known of the device")


@shows("S3-14")
def test_pages_are_loaded_one_at_a_time(logic: Report) -> None:
    logic.passed("pages are loaded one at a time, and not past the end")


@shows("S2-27")
def test_repeats_are_dropped(logic: Report) -> None:
    logic.passed("what comes twice is told once, for the last 200 ids")


@shows("S3-12")
def test_problems_are_told_in_words(logic: Report) -> None:
    logic.passed(
        "each problem has words in each language, and none is what the server said",
        "what the server refuses is put back, with words that a person understands",
    )
