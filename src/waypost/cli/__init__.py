"""The command line: ``waypost COMMAND``. Exit codes: 0 done, 1 failed (one line on stderr says why), 2 wrong usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click

from waypost import __version__
from waypost.cli.groups import LazyGroup


def _of_features() -> Mapping[str, str]:
    from waypost.bootstrap.features import commands

    return commands()


@click.group(
    cls=LazyGroup,
    commands_in={
        "serve": "waypost.cli.serving:serve",
        "demo": "waypost.cli.demo:demo",
        "send": "waypost.cli.sending:send",
        "show": "waypost.cli.showing:show",
        "devices": "waypost.cli.devices:devices",
        "dead": "waypost.cli.dead:dead",
        "outbox": "waypost.cli.outbox:outbox",
        "explain": "waypost.cli.explaining:explain",
        "simulate": "waypost.cli.simulating:simulate",
        "dedup": "waypost.cli.dedup:dedup",
        "apns": "waypost.cli.apns:apns",
        "fcm": "waypost.cli.fcm:fcm",
        "vapid": "waypost.cli.vapid:vapid",
        "check-config": "waypost.cli.checking:check_config",
        "doctor": "waypost.cli.doctor:doctor",
        "senders": "waypost.cli.senders:senders",
        "stacks": "waypost.cli.stacks:stacks",
        "migrate": "waypost.cli.migrating:migrate",
        "backup": "waypost.cli.copies:backup",
        "restore": "waypost.cli.copies:restore",
        "move": "waypost.cli.moving:move",
        "views": "waypost.cli.views:views",
        "lab": "waypost.cli.lab:lab",
        "bench": "waypost.cli.bench:bench",
    },
    beside=_of_features,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="waypost")
def waypost() -> None:
    """Get notifications to every device, and say what happened.

    \b
    First steps:
      waypost demo                                 everything at once, against the provider lab
      waypost serve --config waypost.yaml          the real thing
      waypost keys create --app demo --caller me   a key for the commands that speak to the API

    send, show, cancel, reschedule, feed, tail, bulk, campaigns, schedules, series, segments, templates, devices,
    users, dead, alerts, analytics, balance, audit, outbox, webhooks, explain and dedup speak to the API: give its
    address with --url or WAYPOST_URL, and the key in WAYPOST_API_KEY. keys, accounts, archive, dashboard, migrate,
    backup, restore, move, simulate, check-config, doctor, and devices export, import and warm, read the configuration
    and open the store themselves; apns and fcm read it and speak to Apple and to Google.
    """


_UMASK = 0o077
"""What a command writes is for its user alone: databases, keys, logs."""
_OF_THE_LAB = ("waypost.bench", "waypost.lab")


def main() -> None:
    """Run a command; what it may fail with becomes one line on stderr and exit code 1."""
    os.umask(_UMASK)
    try:
        sys.exit(waypost.main(prog_name="waypost", standalone_mode=False))
    except click.UsageError as misused:
        misused.show()
        sys.exit(misused.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has seen enough
        sys.exit(1)
    except Exception as failed:
        if (why := _reason(failed)) is None:
            raise
        _fail(why)


def _reason(failed: Exception) -> str | None:
    """Say why a command failed; None for what is a mistake of ours."""
    from waypost.client import ClientError
    from waypost.domain.errors import ConfigurationError, WaypostError

    match failed:
        case click.ClickException():
            return failed.message
        case click.Abort():
            return "interrupted"
        case ConfigurationError():
            return f"configuration: {failed}"
        case WaypostError():
            return f"{failed.code}: {failed}"
        case ClientError():
            return str(failed)
        case OSError():
            of = "" if failed.filename is None else f"{failed.filename}: "
            return f"{of}{failed.strerror or type(failed).__name__}"
        case ModuleNotFoundError() if failed.name in _OF_THE_LAB:
            return (
                "the provider lab and the bench are not installed: they are the package waypost-lab,"
                " which `make wheel` in a clone builds"
            )
        case _:
            return None


def _fail(why: str) -> None:
    click.echo(f"waypost: {why}", err=True)
    sys.exit(1)
