"""How commands say things: tables and trees for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])

COLOR_OF = {
    "sent": "green",
    "delivered": "green",
    "opened": "green",
    "taken": "green",
    "partial": "yellow",
    "pending": "yellow",
    "processing": "yellow",
    "scheduled": "yellow",
    "throttled": "yellow",
    "unknown": "yellow",
    "failed": "red",
    "expired": "red",
    "gone": "red",
    "refused": "red",
    "denied": "red",
    "unreachable": "red",
    "unanswered": "red",
}

as_json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_WHOLE = {"notification", "job"}
"""Columns of ids, which are copied from the terminal: other columns give way."""

PIPE_WIDTH = 1_000
"""Columns where there is no terminal: programs and files want whole lines."""


def console() -> Console:
    """Open standard output, with colours where it is a terminal; lines of text are not broken."""
    from rich.console import Console

    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def plain(text: str) -> str:
    """Escape text from outside: its brackets are no markup, and its control characters reach no terminal."""
    from rich.markup import escape

    return escape("".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text))


def colored(status: str) -> str:
    """Mark up a status in the colour of its meaning."""
    color = COLOR_OF.get(status)
    return f"[{color}]{status}[/]" if color else status


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Build a table of plain columns; a missing value is shown as a dash."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in _WHOLE)
    for row in rows:
        made.add_row(*("–" if cell is None or cell == "" else plain(str(cell)) for cell in row))
    return made


def short_time(timestamp: str | None) -> str | None:
    """Format an API timestamp in local time, to the second."""
    if timestamp is None:
        return None
    return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def elapsed_ms(start: str, end: str | None) -> str | None:
    """Format the span from one API timestamp to another, as people say it."""
    if end is None:
        return None
    span_ms = round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000)
    return f"{span_ms} ms" if abs(span_ms) < 10_000 else f"{span_ms / 1000:.1f} s"


def progress() -> Progress:
    """Build a progress bar on stderr for long work; invisible where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    error = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=error,
        disable=not error.is_terminal,
    )
