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
        "dedup": "waypost.cli.dedup:dedup",
        "apns": "waypost.cli.apns:apns",
        "fcm": "waypost.cli.fcm:fcm",
        "vapid": "waypost.cli.vapid:vapid",
        "check-config": "waypost.cli.checking:check_config",
        "stacks": "waypost.cli.stacks:stacks",
        "migrate": "waypost.cli.migrating:migrate",
        "backup": "waypost.cli.copies:backup",
        "restore": "waypost.cli.copies:restore",
        "move": "waypost.cli.moving:move",
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

    send, show, bulk, devices, users, dead, audit, outbox, explain and dedup speak to the API: give its address with
    --url or WAYPOST_URL, and the key in WAYPOST_API_KEY. keys, migrate, backup, restore, move, check-config, and
    devices export, import and warm, read the configuration and open the store themselves; apns and fcm read it and
    speak to Apple and to Google.
    """


_UMASK = 0o077
"""What a command writes is for its user alone: databases, keys, logs."""
_OF_THE_LAB = ("waypost.bench", "waypost.lab")


def main() -> None:
    """Run a command; what it may fail with becomes one line on stderr and exit code 1."""
    from waypost.client import ClientError
    from waypost.domain.errors import ConfigurationError, WaypostError

    os.umask(_UMASK)
    try:
        sys.exit(waypost.main(prog_name="waypost", standalone_mode=False))
    except click.UsageError as misused:
        misused.show()
        sys.exit(misused.exit_code)
    except click.ClickException as failed:
        _fail(failed.message)
    except click.Abort:
        _fail("interrupted")
    except ConfigurationError as wrong:
        _fail(f"configuration: {wrong}")
    except WaypostError as failed:
        _fail(f"{failed.code}: {failed}")
    except ClientError as failed:
        _fail(str(failed))
    except ModuleNotFoundError as missing:
        if missing.name not in _OF_THE_LAB:
            raise
        _fail("the provider lab and the bench are not installed; install them with: pip install 'waypost[lab]'")
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has seen enough
        sys.exit(1)


def _fail(why: str) -> None:
    click.echo(f"waypost: {why}", err=True)
    sys.exit(1)
