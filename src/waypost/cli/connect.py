"""The two ways in: through the API as its callers, or to the store as a worker."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from waypost.client import Client
    from waypost.config import Config

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_URL = "http://127.0.0.1:8080"


def api_options(command: F) -> Callable[..., Any]:
    """Give *command* a ``client`` for the API that --url and the environment name."""

    @click.option(
        "--url",
        envvar="WAYPOST_URL",
        default=DEFAULT_URL,
        show_default=True,
        show_envvar=True,
        help="The URL of the API.",
    )
    @click.option(
        "--ca-file",
        envvar="WAYPOST_CA",
        type=click.Path(path_type=Path),
        help="Certificate authorities to trust (PEM).",
    )
    @click.option(
        "--cert-file",
        envvar="WAYPOST_CERT",
        type=click.Path(path_type=Path),
        help="Client certificate to present (PEM, with its key).",
    )
    @functools.wraps(command)
    def with_client(url: str, ca_file: Path | None, cert_file: Path | None, **given: Any) -> Any:
        return command(client=_client(url, ca_file, cert_file), **given)

    return with_client


def _client(url: str, ca_file: Path | None, cert_file: Path | None) -> Client:
    from waypost.client import Client

    key = os.environ.get("WAYPOST_API_KEY")
    if not key:
        raise click.UsageError("Put an API key into WAYPOST_API_KEY; `waypost keys create` makes one.")
    try:
        # who types a command decides whether to repeat it
        return Client(url, key, retry_s=0, ca_file=ca_file, certificate_file=cert_file)
    except ValueError as misfit:
        raise click.UsageError(f"Cannot call {url}: {misfit}.") from None
    except OSError as unreadable:
        hint = "--ca-file" if cert_file is None else "--ca-file or --cert-file"
        raise click.BadParameter(f"cannot be used: {unreadable.strerror}", param_hint=hint) from None


config_option = click.option(
    "--config",
    "config_path",
    envvar="WAYPOST_CONFIG",
    type=click.Path(path_type=Path),
    help="Configuration file. Default: waypost.yaml, if it exists.",
)


def read_config(path: Path | None) -> tuple[Config, Path | None]:
    """Read the configuration and return it with its file; from the environment alone where there is no file."""
    from waypost.bootstrap.registry import load

    if path is None and Path("waypost.yaml").exists():
        path = Path("waypost.yaml")
    if path is None and "WAYPOST_APPS" not in os.environ:
        raise click.UsageError("There is no waypost.yaml here; give one with --config.")
    return load(path, os.environ), path
