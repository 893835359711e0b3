"""``waypost lab``: APNs, FCM and Web Push on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from waypost.cli.groups import LazyGroup
from waypost.cli.printing import as_json_option

_LAST_PORT = 65_535


def _ports(_context: click.Context, _option: click.Parameter, said: tuple[str, ...]) -> dict[str, int]:
    """Read the ports of further gateways, refusing names that no gateway has."""
    if not said:
        return {}
    from waypost.lab.counterparts import further_addresses

    known, ports = further_addresses(), {}
    for text in said:
        name, _, port = text.partition("=")
        if name not in known:
            raise click.BadParameter(f"no gateway {name!r}; known: {', '.join(known)}")
        if not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
            raise click.BadParameter(f"expected NAME=PORT, got {text!r}")
        ports[name] = int(port)
    return ports


@click.group(
    cls=LazyGroup,
    commands_in={"check": "waypost.cli.lab_check:check"},
    invoke_without_command=True,
    short_help="Simulate Apple, Google and the browsers' push services on this machine.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path("lab"),
    show_default=True,
    help="The folder of the credentials; created if missing.",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--apns-port", default=2197, show_default=True, help="Port 0 picks a free one, also below.")
@click.option("--fcm-port", default=2198, show_default=True)
@click.option("--webpush-port", default=2199, show_default=True)
@click.option("--oauth-port", default=2191, show_default=True)
@click.option("--admin-port", default=2190, show_default=True)
@click.option("--faults", type=click.Path(path_type=Path), help="A YAML file of fault rules that apply from the start.")
@click.option("--lenient", is_flag=True, help="Refuse only what vendors document an answer for.")
@click.option("--known-tokens-only", is_flag=True, help="Refuse tokens that the lab did not create.")
@click.option("--journal", is_flag=True, help="Append accepted messages to received.ndjson.")
@click.option(
    "--fcm-quota",
    "fcm_quota_per_minute",
    default=600_000,
    show_default=True,
    help="The most messages of an FCM project per minute.",
)
@click.option("--apns-sandbox-port", default=0, help="Default: any free port, also below.")
@click.option("--apns-broadcast-port", default=0)
@click.option("--apns-channels-port", default=0)
@click.option("--webpush-http1-port", default=0)
@click.option("--webpush-plain-port", default=0)
@click.option("--browsers-port", default=0)
@click.option("--metadata-port", default=0)
@click.option(
    "--port",
    "further_ports",
    multiple=True,
    metavar="NAME=PORT",
    callback=_ports,
    help="The port of a further gateway, such as email=2587; may be repeated. Default: any free port.",
)
@as_json_option
@click.pass_context
def lab(
    context: click.Context,
    /,
    *,
    directory: Path,
    host: str,
    faults: Path | None,
    lenient: bool,
    known_tokens_only: bool,
    journal: bool,
    as_json: bool,
    **others: Any,
) -> None:
    """Run gateways that check requests as the real ones do, record them, and fail on demand.

    \b
    Examples:
      waypost lab
      waypost lab --directory lab --faults faults.yaml --json
      waypost lab --port email=2587 --port twilio=2196
      waypost lab check --command ./send-to-targets
    """
    if context.invoked_subcommand is not None:
        return
    from waypost.lab.lab import run_lab
    from waypost.lab.settings import LabSettings

    settings = LabSettings(
        directory=directory,
        host=host,
        faults=faults,
        strict=not lenient,
        accept_any_token=not known_tokens_only,
        journal=journal,
        **others,
    )
    try:
        run_lab(settings, json=as_json)
    except OSError as taken:
        raise click.ClickException(f"the lab cannot start: {taken.strerror or taken}") from None
