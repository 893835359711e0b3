"""``waypost views``: the tables under other names, for reports."""

from __future__ import annotations

from pathlib import Path

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option, print_json

VOCABULARIES = ("notify", "user_api")


@click.command(short_help="Print SQL that shows the tables under other names.")
@click.argument("vocabulary", type=click.Choice(VOCABULARIES))
@click.option("--drop", "drops", is_flag=True, help="Print what removes the views.")
@config_option
@as_json_option
def views(vocabulary: str, drops: bool, config_path: Path | None, as_json: bool) -> None:
    """Print the SQL of views for reports, in the words of another API; nothing is written.

    On PostgreSQL they are in a schema of the vocabulary's name, on SQLite their names begin with it. Remove them
    before an upgrade that migrates the store, and make them anew behind it.

    \b
    Examples:
      waypost views notify | psql postgresql://waypost@127.0.0.1/waypost
      waypost views user_api | sqlite3 waypost.db
      waypost views notify --drop | sqlite3 waypost.db
    """
    config, _ = read_config(config_path)
    from waypost.bootstrap.named_views import views_of

    made = views_of(config, vocabulary, drops=drops)
    print_json({"statements": made}) if as_json else click.echo("\n".join(made))
