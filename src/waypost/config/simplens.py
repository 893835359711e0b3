"""The profile ``simplens``: the environment and the file of that service, as settings of ours.

It lies beneath the configuration: what that says itself holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from waypost.domain.channel import Channel
from waypost.domain.errors import ConfigurationError

PROFILE: Final = "simplens"
FILE_VARIABLE: Final = "SIMPLENS_CONFIG_PATH"
FILE: Final = "simplens.config.yaml"
"""The file of its providers, beside our own file, unless the variable says otherwise."""

Count = Annotated[int, Meta(ge=1)]


_OF_RECOVERY: Final = (
    ("RECOVERY_POLL_INTERVAL_MS", "poll_s", 1_000),
    ("RECOVERY_BATCH_SIZE", "batch", 1),
    ("PROCESSING_STUCK_THRESHOLD_MS", "processing_stuck_s", 1_000),
    ("PENDING_STUCK_THRESHOLD_MS", "pending_stuck_s", 1_000),
    ("IDEMPOTENCY_TTL_SECONDS", "record_ttl_s", 1),
    ("PROCESSING_TTL_SECONDS", "lock_ttl_s", 1),
)
"""Each variable of its recovery, the setting, and how many of its units are one of that."""


class RateLimit(Struct, frozen=True, rename="camel"):
    """The bucket of a provider; an unset field has that service's default (requirements S4-29)."""

    max_tokens: Count = 100
    refill_rate: Annotated[float, Meta(gt=0)] = 10
    """Tokens that come back, a second."""


class Options(Struct, frozen=True, rename="camel"):
    """Options of a provider."""

    rate_limit: RateLimit = RateLimit()


class Provider(Struct, frozen=True):
    """A provider and its name."""

    id: str
    options: Options = Options()


class ChannelChoice(Struct, frozen=True):
    """The choice of providers for a channel."""

    default: str | None = None
    fallback: str | None = None
    """The provider that stands in: our section ``<channel>/<fallback>``."""


class ProviderFile(Struct, frozen=True):
    """The parts of that service's providers file that have a counterpart here."""

    providers: tuple[Provider, ...] = ()
    channels: dict[str, ChannelChoice] = {}

    def bucket(self, channel: str) -> RateLimit:
        """Find the bucket of the provider that serves *channel*, or of the one of that name where none is chosen."""
        choice = self.channels.get(channel)
        name = (choice.default if choice else None) or channel
        return self._bucket_of(name)

    def fallback(self, channel: str) -> tuple[str, RateLimit] | None:
        """Find the provider that stands in on *channel*, and its bucket; None where there is none."""
        choice = self.channels.get(channel)
        return (choice.fallback, self._bucket_of(choice.fallback)) if choice and choice.fallback else None

    def _bucket_of(self, provider: str) -> RateLimit:
        return next((each.options.rate_limit for each in self.providers if each.id == provider), RateLimit())


def put_beneath(
    tree: dict[str, Any], environ: Mapping[str, str], providers: Mapping[str, Any], channels: Iterable[Channel]
) -> None:
    """Put the service's settings into *tree* where it has none; ConfigurationError names what is wrong in them."""
    try:
        file = msgspec.convert(providers, ProviderFile)
    except msgspec.ValidationError as misfit:
        raise ConfigurationError(FILE, str(misfit)) from None
    outbox = _section(tree, "outbox")
    outbox.setdefault("topics", "channels")
    if (poll_ms := _said(environ, "OUTBOX_POLL_INTERVAL_MS", Count)) is not None:
        outbox.setdefault("poll_s", poll_ms / 1_000)
    if (batch := _said(environ, "OUTBOX_BATCH_SIZE", Count)) is not None:
        outbox.setdefault("batch", batch)
    _put_recovery(tree, environ)
    retries = _said(environ, "MAX_RETRY_COUNT", Annotated[int, Meta(ge=0)])
    for app in _section(tree, "apps").values():
        if not isinstance(app, dict):
            continue
        app.setdefault("on_denied", "fail")
        retry, rates = _section(app, "retry"), _section(app, "rates")
        retry.setdefault("default", "s4_simple" if retries is None else {"max_retries": retries})
        retry.setdefault("throttle_counts_as_retry", True)
        for channel in channels:
            if channel in app:
                rates.setdefault(channel, _rate(file.bucket(channel)))
            stands_in = file.fallback(channel)
            if stands_in is not None and (slot := f"{channel}/{stands_in[0]}") in app:
                _section(app, "fallback").setdefault(channel, [stands_in[0]])
                rates.setdefault(slot, _rate(stands_in[1]))


def _rate(bucket: RateLimit) -> dict[str, float]:
    return {"capacity": bucket.max_tokens, "refill_per_s": bucket.refill_rate, "ramp_s": 0}


def _put_recovery(tree: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Put the settings of the recovery; its record in Redis, where there is a Redis to keep it in."""
    recovery = _section(tree, "recovery")
    recovery.setdefault("auto_retry", False)
    recovery.setdefault("second_record", tree.get("redis") is not None)
    for variable, setting, unit in _OF_RECOVERY:
        if (said := _said(environ, variable, Count)) is not None:
            recovery.setdefault(setting, said if unit == 1 else said / unit)
    if (kept_ms := _said(environ, "CLEANUP_RESOLVED_ALERTS_RETENTION_MS", Annotated[int, Meta(ge=0)])) is not None:
        recovery.setdefault("keep_resolved_s", kept_ms // 1_000)


def _section(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the mapping of that name, made where there is none; one that is no mapping is refused elsewhere."""
    if tree.get(name) is None:
        tree[name] = {}
    found = tree[name]
    return found if isinstance(found, dict) else {}


def _said(environ: Mapping[str, str], name: str, kind: Any) -> Any:
    """Convert the variable's value to *kind*; None where it is not set or empty."""
    if not environ.get(name):
        return None
    try:
        return msgspec.convert(environ[name], kind, strict=False)
    except msgspec.ValidationError as misfit:
        raise ConfigurationError(name, str(misfit)) from None
