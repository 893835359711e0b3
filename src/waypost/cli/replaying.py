"""Replays from the command line: page after page, with a bar, then how many began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from waypost.cli.printing import console, print_json, progress


def replay_all(ask: Callable[[str | None], dict[str, Any]], as_json: bool) -> None:
    """Order pages by *ask*, which takes where one begins, until there is no next; print how many began."""
    totals = {"replayed": 0, "skipped": 0}
    with progress() as bar:
        task = bar.add_task("replaying", total=None)
        cursor: str | None = None
        while True:
            answer = ask(cursor)
            totals["replayed"] += answer["replayed"]
            totals["skipped"] += len(answer["results"]) - answer["replayed"]
            bar.advance(task, len(answer["results"]))
            cursor = answer["next"]
            if cursor is None:
                break
    if as_json:
        print_json(totals)
    else:
        console().print(f"{totals['replayed']} replayed, {totals['skipped']} could not be")
