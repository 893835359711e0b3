"""``waypost serve``: the service itself."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from waypost.cli.connect import config_option, read_config
from waypost.cli.printing import as_json_option

if TYPE_CHECKING:
    from waypost.config import Config


@click.command(short_help="Accept and deliver notifications.")
@config_option
@click.option("--workers", type=click.IntRange(1, 64), help="Number of processes; overrides the configuration.")
@click.option(
    "--listen", metavar="HOST:PORT", help="Address to listen on; overrides the configuration. Port 0 picks a free one."
)
@click.option("--roles", metavar="ROLE,…", help="Roles of this process, such as api or worker,report. Default: all.")
@click.option(
    "--profile",
    type=click.Choice(["notifications-service", "simplens"]),
    help="The ways of another service: docs/internals/notifications-service.md (configured by environment alone), "
    "docs/internals/simplens.md.",
)
@as_json_option
def serve(
    config_path: Path | None,
    workers: int | None,
    listen: str | None,
    roles: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then wait for deliveries in flight.

    Says once every worker is ready, with the real address, and where the dashboard is: in a terminal with a link that
    opens it. Logs go to stderr as JSON.

    \b
    Examples:
      waypost serve --config waypost.yaml
      waypost serve --workers 1 --listen 127.0.0.1:0 --json
      waypost serve --roles api
      waypost serve --profile notifications-service
      waypost serve --profile simplens
    """
    if profile == "notifications-service":
        _stand_in(given=(config_path, workers, listen, roles))
    listed = None if roles is None else f"[{roles}]"
    said = {"WORKERS": workers, "LISTEN": listen, "ROLES": listed, "PROFILE": profile}
    for name, given in said.items():
        if given is not None:
            os.environ[f"WAYPOST_{name}"] = str(given)  # read below, and by the workers that inherit it
    config, config_path = read_config(config_path)
    from waypost.bootstrap.serving import serve as run

    def announce(url: str, grpc: str | None) -> None:
        if as_json:
            ready = {"ready": True, "url": url, "grpc": grpc, "workers": config.workers, "pid": os.getpid()}
            click.echo(json.dumps(ready))
        else:
            processes = "1 worker" if config.workers == 1 else f"{config.workers} workers"
            also = f", gRPC at {grpc}" if grpc else ""
            reference = f"its reference is at {url}/docs"
            click.echo(f"Waypost is ready at {url}{also} ({processes}); {reference}. Stop with Ctrl-C.")
            _say_dashboard(config, url)

    run(config, config_path, announce=announce)


def _say_dashboard(config: Config, url: str) -> None:
    """Print where the dashboard is; a link that opens it in a terminal alone, since other output is kept."""
    from waypost.bootstrap.dashboard import dashboard_door, has_dashboard
    from waypost.domain.errors import ConfigurationError

    if not has_dashboard(config):
        return
    said = f"{url}/dashboard (`waypost dashboard` prints a link that opens it)"
    if sys.stdout.isatty():
        with suppress(OSError, ConfigurationError):  # such as a full disk: whoever asks later is told
            said = dashboard_door(config, url).url
    click.echo(f"Dashboard: {said}")


def _stand_in(given: tuple[object, ...]) -> NoReturn:
    """Run the profile to its end."""
    if any(each is not None for each in given):
        raise click.UsageError("a profile is configured by its environment variables alone")
    from waypost.domain.errors import ConfigurationError

    try:
        from waypost.bootstrap.drop_in import serve as run
    except ModuleNotFoundError as missing:
        if missing.name not in ("hiredis", "psycopg"):
            raise
        from waypost.domain.extras import how_to_install

        raise ConfigurationError(
            "--profile", f"its clients are not installed: {how_to_install('postgres', 'redis')}"
        ) from None
    sys.exit(run(os.environ))
