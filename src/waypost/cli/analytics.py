"""``waypost analytics``: what became of what was sent, as tables, JSON, CSV or Parquet."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, plain, print_json, table

if TYPE_CHECKING:
    from waypost.client import Client

F = TypeVar("F", bound=Callable[..., Any])

_LABELS = ("type", "channel", "platform", "campaign", "variant", "template")
_SPAN = (
    click.option("--since", help="The first moment (RFC 3339); seven days ago if omitted."),
    click.option("--until", help="The moment before which it ends; now if omitted."),
)
_TIME = (
    click.option("--every", type=click.Choice(["hour", "day"]), help="Tell each hour or day apart."),
    click.option("--zone", default="UTC", show_default=True, help="The time zone of hours and days."),
)
_SENT = (
    click.option("--by", type=click.Choice(_LABELS), help="Tell these apart."),
    click.option(
        "--of",
        type=click.Choice(["notifications", "deliveries"]),
        default="notifications",
        show_default=True,
        help="What is counted: a notification once, or each of its deliveries.",
    ),
    *(click.option(f"--{name}", help=f"Only of this {name}.") for name in _LABELS),
)
_as_csv = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
_to_parquet = click.option(
    "--parquet",
    "parquet",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a Parquet file; takes the optional part `archive`.",
)


def _with(*options: Callable[[F], F]) -> Callable[[F], F]:
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


@click.group(short_help="Show rates, funnels, events and the best hour of a user.")
def analytics() -> None:
    """Show what became of what was sent, and what users did.

    \b
    Examples:
      waypost analytics rates --every day --zone Europe/Zurich
      waypost analytics funnel --campaign spring-sale --by variant
      waypost analytics events --name order_paid --csv
      waypost analytics best-hour user-42
    """


@analytics.command(short_help="Show delivery, read, open and conversion rates.")
@_with(*_SPAN, *_TIME, *_SENT)
@api_options
@as_json_option
@_as_csv
@_to_parquet
def rates(client: Client, as_json: bool, as_csv: bool, parquet: Path | None, **asked: str | None) -> None:
    """Show how much of what was sent was delivered, read, opened and acted on.

    \b
    Examples:
      waypost analytics rates
      waypost analytics rates --by channel --type promotion --json
      waypost analytics rates --every day --parquet rates.parquet
    """
    answer = client.analytics("rates", **asked)
    columns = ("start", "label", "sent", "delivered", "read", "opened", "action_taken")
    shares = ("delivery_rate", "read_rate", "open_rate", "conversion_rate")
    _show(answer, answer["rows"], columns, shares, as_json=as_json, as_csv=as_csv, parquet=parquet)


@analytics.command(short_help="Show how far what was sent came.")
@_with(*_SPAN, *_SENT)
@api_options
@as_json_option
@_as_csv
@_to_parquet
def funnel(client: Client, as_json: bool, as_csv: bool, parquet: Path | None, **asked: str | None) -> None:
    """Show sent, delivered, opened and acted on, each as a part of the step before; by campaign unless said otherwise.

    \b
    Examples:
      waypost analytics funnel
      waypost analytics funnel --campaign spring-sale --by variant
    """
    answer = client.analytics("funnel", **asked)
    rows = [{"label": each["label"], **step} for each in answer["funnels"] for step in each["steps"]]
    _show(
        answer,
        rows,
        ("label", "event", "count"),
        ("of_sent", "of_before"),
        as_json=as_json,
        as_csv=as_csv,
        parquet=parquet,
    )


@analytics.command(short_help="Show how often events happened.")
@_with(*_SPAN, *_TIME, click.option("--name", help="Only events of this name."))
@api_options
@as_json_option
@_as_csv
@_to_parquet
def events(client: Client, as_json: bool, as_csv: bool, parquet: Path | None, **asked: str | None) -> None:
    """Show events by the time when they happened: those of notifications, and the app's own.

    \b
    Examples:
      waypost analytics events --every hour
      waypost analytics events --name order_paid --csv
    """
    answer = client.analytics("events", **asked)
    _show(answer, answer["rows"], ("start", "name", "count"), (), as_json=as_json, as_csv=as_csv, parquet=parquet)


@analytics.command("best-hour", short_help="Show when to send to a user.")
@click.argument("user_id")
@click.option("--segment", help="The segment that the user counts as one of while too little is known of the user.")
@api_options
@as_json_option
def best_hour(client: Client, user_id: str, segment: str | None, as_json: bool) -> None:
    """Show the hour of the day in which a user reads most of what is sent, in the user's time zone.

    \b
    Examples:
      waypost analytics best-hour user-42
      waypost analytics best-hour user-42 --segment new-customers
    """
    answer = client.best_hour(user_id, segment=segment)
    if as_json:
        print_json(answer)
    elif answer["hour"] is None:
        console().print("too little is known")
    else:
        whose = {"user": "this user opens", "segment": "users like this one open", "app": "the app's users open"}
        console().print(
            f"{answer['hour']:02}:00 {answer['zone']}: {whose[answer['based_on']]} {_share(answer['rate'])} then"
        )


def _show(
    answer: Any,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    shares: Sequence[str],
    *,
    as_json: bool,
    as_csv: bool,
    parquet: Path | None,
) -> None:
    """Print *rows* as asked, or write them: what no row has is left out of a table."""
    if parquet is not None:
        _write_parquet(parquet, rows, columns, shares)
        return
    if as_json:
        print_json(answer)
        return
    if as_csv:
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow([*columns, *shares])
        lines.writerows([_plain(row[name]) for name in (*columns, *shares)] for row in rows)
        return
    shown = [name for name in columns if any(row[name] is not None for row in rows)]
    cells = [(*(str(row[name]) for name in shown), *(_share(row[name]) for name in shares)) for row in rows]
    heads = [name.replace("_", " ") for name in (*shown, *shares)]
    console().print(
        table(heads, cells) if rows else "nothing was counted (analytics.enabled: true counts notifications)"
    )


def _write_parquet(
    path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], shares: Sequence[str]
) -> None:
    """Write *rows* with a type for each column, whatever is in them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        from waypost.domain.extras import how_to_install

        raise click.ClickException(f"the library is missing: {how_to_install('archive')}") from None
    types = {"start": pa.timestamp("ms", tz="UTC"), "label": pa.string(), "name": pa.string(), "event": pa.string()}
    fields = [(name, types.get(name, pa.int64())) for name in columns] + [(name, pa.float64()) for name in shares]
    cells = [{**row, "start": row.get("start") and datetime.fromisoformat(row["start"])} for row in rows]
    pq.write_table(pa.Table.from_pylist(cells, schema=pa.schema(fields)), path, compression="zstd")
    console().print(f"{plain(str(path))}: {len(rows):,} rows")


def _plain(value: Any) -> Any:
    """Return a cell of CSV that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _share(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.2%}"
