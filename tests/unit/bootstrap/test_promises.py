"""What each stack says that it lacks: in code, on its page, and of a configuration that asks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from waypost.bootstrap.promises import lacks_of
from waypost.bootstrap.registry import load
from waypost.cli import waypost
from waypost.cli.stacks import BEGIN, END, markdown, meanings
from waypost.config import Config, Stack
from waypost.domain.errors import ConfigurationError
from waypost.ports.promises import EVERY_PROMISE, Promise
from waypost.stores.kafka.work import LogWork
from waypost.stores.sql.claims.work import ClaimedWork
from waypost.stores.sql.work import SqlWork

PAGE = Path(__file__).parents[3] / "docs" / "stacks.md"
KEPT = {Stack.EMBEDDED: SqlWork.promises, Stack.LOG: LogWork.promises}


def test_the_store_promises_the_same_on_each_engine() -> None:
    assert ClaimedWork.promises == SqlWork.promises


@pytest.mark.parametrize("stack", Stack)
def test_what_is_shown_is_what_the_adapter_promises(stack: Stack) -> None:
    assert EVERY_PROMISE - lacks_of(stack).keys() == KEPT[stack]


def test_the_page_holds_the_generated_tables() -> None:
    """To renew it: waypost stacks --markdown."""
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == markdown()


def test_every_promise_is_one_plain_sentence() -> None:
    assert [each for each, text in meanings().items() if text.count(".") != 1 or not text.endswith(".")] == []


def test_the_command_says_it_to_people_and_to_programs() -> None:
    said = json.loads(CliRunner().invoke(waypost, ["stacks", "--json"]).output)
    assert said["lacks"]["log"] == {str(each): text for each, text in lacks_of(Stack.LOG).items()}
    assert said["promises"] == {str(each): text for each, text in meanings().items()}
    shown = CliRunner().invoke(waypost, ["stacks"]).output
    assert [each for each in Promise if f"\n{each} " not in shown] == []
    assert f"log lacks {Promise.ANSWERS_CANCELS}: " in shown


def configured(folder: Path, text: str) -> Config:
    """What *text* configures."""
    (folder / "waypost.yaml").write_text(f"apps: {{demo: {{}}}}\nkafka: {{bootstrap: h}}\n{text}")
    return load(folder / "waypost.yaml", {})


def test_a_promise_that_is_required_and_lacked_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the log stack lacks accepts_whole_batches: each item is") as told:
        configured(tmp_path, "stack: log\nrequires: [keeps_order, accepts_whole_batches]\n")
    assert told.value.path == "requires"


def test_what_a_stack_keeps_may_be_required_of_it(tmp_path: Path) -> None:
    assert configured(tmp_path, "stack: log\nrequires: [keeps_order]\n").requires == (Promise.KEEPS_ORDER,)
    configured(tmp_path, f"requires: [{', '.join(Promise)}]\n")
