"""``waypost greetings``."""

import click


@click.command(short_help="Greet nobody yet.")
def greetings() -> None:
    """Say that nobody was greeted."""
    click.echo("nobody was greeted")
