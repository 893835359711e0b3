"""The issuers of the configuration, each with its keys."""

from __future__ import annotations

from waypost.adapters.jwt.claims import Issuer
from waypost.adapters.jwt.tokens import IssuedTokens
from waypost.config import Config
from waypost.ports.clock import Clock
from waypost.telemetry import Telemetry


def tokens_of(config: Config, clock: Clock, telemetry: Telemetry) -> IssuedTokens:
    """Build the verifier of the tokens of every app's issuers."""
    issuers = [
        Issuer(app, str(name), settings)
        for app, chosen in config.apps.items()
        for name, settings in chosen.issuers.items()
    ]
    return IssuedTokens(issuers, clock, telemetry)
