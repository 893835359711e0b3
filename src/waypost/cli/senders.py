"""``waypost senders``: the senders that are installed, and a package for one more."""

from __future__ import annotations

import re
from pathlib import Path

import click
from msgspec import Struct

from waypost.cli.printing import as_json_option, console, print_json, table

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")

_LONGEST = 40
"""The most characters of a title."""


class InstalledSender(Struct, frozen=True):
    """A sender that is installed."""

    channel: str
    title: str
    platforms: tuple[str, ...]
    package: str
    in_lab: bool


@click.group(invoke_without_command=True, short_help="List the senders that are installed, or begin one more.")
@as_json_option
@click.pass_context
def senders(context: click.Context, /, *, as_json: bool) -> None:
    """List the senders that are installed: their channels, the platforms they reach, the package they come from, and
    whether `waypost lab check --sender` can check them.

    \b
    Examples:
      waypost senders
      waypost senders new pager
    """
    if context.invoked_subcommand is not None:
        return
    found = _found()
    if as_json:
        print_json({"senders": [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]})
        return
    rows = [
        (each.channel, each.title, ", ".join(each.platforms), each.package, "yes" if each.in_lab else "–")
        for each in found
    ]
    console().print(table(("channel", "title", "platforms", "package", "lab check"), rows))


@senders.command()
@click.argument("name")
@click.option("--channel", help="The channel, as settings and submissions call it. [NAME, with _ for -]")
@click.option("--platform", help="The platform of the devices that it reaches. [the channel]")
@click.option("--title", help="The name as people say it. [NAME, in capitals]")
@click.option("--into", type=click.Path(path_type=Path), help="The folder to make. [waypost-NAME]")
@as_json_option
def new(
    *, name: str, channel: str | None, platform: str | None, title: str | None, into: Path | None, as_json: bool
) -> None:
    """Write a package with a sender that works: to a provider that there is not yet but in its own part of the lab.

    It has the sender, the lab's side of it, tests, and the entry points by which Waypost finds it once it is installed.

    \b
    Examples:
      waypost senders new pager
      waypost senders new acme-pager --channel pager --platform beeper --title "Acme Pager"
    """
    from waypost.bootstrap.registry import why_not_free
    from waypost.cli.sender_package import Names, write

    if not _NAME.fullmatch(name):
        raise click.BadParameter("lower-case letters and digits, with - between words, such as acme-pager")
    channel = channel or name.replace("-", "_")
    if (fault := why_not_free(channel, platform or channel)) is not None:
        raise click.UsageError(f"{fault}.")
    names = Names(name, channel, platform or channel, title or name.replace("-", " ").replace("_", " ").title())
    if '"' in names.title or "\\" in names.title or not names.title.isprintable() or len(names.title) > _LONGEST:
        raise click.BadParameter(f"up to {_LONGEST} characters, no quotes and backslashes", param_hint="--title")
    folder = into or Path(names.distribution)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.ClickException(f"{folder} is there already, and nothing of it is overwritten")
    written = [str(path) for path in write(names, folder)]
    if as_json:
        print_json({"folder": str(folder), "channel": channel, "module": names.module, "files": written})
        return
    click.echo("\n".join(written))
    click.echo(
        f"\nNext:\n  cd {folder}\n  pip install -e . && pytest\n  waypost lab check --sender {channel}\n"
        f"Then make {names.module}/lab.py refuse what the provider refuses, and mend what fails."
    )


def _found() -> list[InstalledSender]:
    from importlib.metadata import entry_points

    from waypost.bootstrap.registry import installed
    from waypost.ports.plugin import ENTRY_POINTS

    packages = {each.name: each.dist for each in entry_points(group=ENTRY_POINTS)}
    found, in_lab = [], _in_lab()
    for plugin in installed():
        package = packages[plugin.channel]
        named = "–" if package is None else f"{package.name} {package.version}"
        platforms = tuple(str(platform) for platform in plugin.platforms)
        channel = str(plugin.channel)
        found.append(InstalledSender(channel, plugin.title, platforms, named, channel in in_lab))
    return found


def _in_lab() -> set[str]:
    """Name the channels that have an account in the lab; none where the lab is not installed."""
    try:
        from waypost.lab.counterparts import counterparts
    except ModuleNotFoundError:
        return set()
    return {each.account.channel for each in counterparts() if each.account}
