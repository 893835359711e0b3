"""``waypost lab``: APNs, FCM and Web Push on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from waypost.cli.printing import as_json_option


@click.command(short_help="Stand in for Apple, Google and the browsers, on this machine.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path("lab"),
    show_default=True,
    help="Where the credentials are kept; made when missing.",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--apns-port", default=2197, show_default=True, help="0 is any free one, also below.")
@click.option("--fcm-port", default=2198, show_default=True)
@click.option("--webpush-port", default=2199, show_default=True)
@click.option("--oauth-port", default=2191, show_default=True)
@click.option("--admin-port", default=2190, show_default=True)
@click.option("--faults", type=click.Path(path_type=Path), help="A YAML file of fault rules that hold from the start.")
@click.option("--lenient", is_flag=True, help="Only refuse what the vendors name an answer for.")
@click.option("--known-tokens-only", is_flag=True, help="Refuse tokens the lab has not made.")
@click.option("--journal", is_flag=True, help="Append what is accepted to received.ndjson.")
@as_json_option
def lab(  # noqa: PLR0913 - one argument an option
    *,
    directory: Path,
    host: str,
    apns_port: int,
    fcm_port: int,
    webpush_port: int,
    oauth_port: int,
    admin_port: int,
    faults: Path | None,
    lenient: bool,
    known_tokens_only: bool,
    journal: bool,
    as_json: bool,
) -> None:
    """Run gateways that check what they get as the real ones do, keep it, and fail on demand.

    \b
    Examples:
      waypost lab
      waypost lab --directory lab --faults faults.yaml --json
    """
    from waypost.lab.lab import run_lab
    from waypost.lab.settings import LabSettings

    settings = LabSettings(
        directory=directory,
        host=host,
        faults=faults,
        strict=not lenient,
        accept_any_token=not known_tokens_only,
        journal=journal,
        apns_port=apns_port,
        fcm_port=fcm_port,
        webpush_port=webpush_port,
        oauth_port=oauth_port,
        admin_port=admin_port,
    )
    try:
        run_lab(settings, json=as_json)
    except OSError as taken:
        raise click.ClickException(f"the lab cannot start: {taken.strerror or taken}") from None
