"""``waypost vapid``: the key by which push services know who sends."""

from __future__ import annotations

from pathlib import Path

import click

from waypost.cli.printing import as_json_option, print_json


@click.command(short_help="Make the key of Web Push, or show its public half.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--public", "shows", is_flag=True, help="Show the public half of the key in FILE; make nothing.")
@as_json_option
def vapid(file: Path, shows: bool, as_json: bool) -> None:
    """Make a VAPID key in FILE, with the mode 0600, and print its public half: the applicationServerKey of your page.

    A file that exists is never overwritten: browsers that subscribed with its key would all have to subscribe again.

    \b
    Examples:
      waypost vapid vapid.pem
      waypost vapid --public vapid.pem
    """
    from waypost.bootstrap.vapid import public_key_in, write_new_key

    if shows:
        public_key = public_key_in(file)
    else:
        try:
            public_key = write_new_key(file)
        except FileExistsError:
            raise click.ClickException(f"{file} exists; its public half: waypost vapid --public {file}") from None
        except OSError as refused:
            raise click.ClickException(f"cannot write {file}: {refused.strerror}") from None
    print_json({"file": str(file), "public_key": public_key}) if as_json else click.echo(public_key)
