"""Limits: where they are counted, and what each provider gets."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from waypost.adapters.in_process.ahead import TakenAhead
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.adapters.in_process.while_away import LocalWhileAway
from waypost.adapters.mapped.limiter import MappedLimiter
from waypost.bootstrap import features
from waypost.bootstrap.paths import run_dir_of
from waypost.bootstrap.senders import sections_of
from waypost.config import Config
from waypost.config.building import did_you_mean
from waypost.config.settings import RateSettings
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError, ErrorCode, StorageFull
from waypost.domain.limits import Rate, TokenBucket
from waypost.entrypoints.access import GRPC_ACCESS
from waypost.entrypoints.limits import Bounds, LimitedRoute, Network
from waypost.entrypoints.rest.app import served_routes
from waypost.entrypoints.rest.settings import RestSettings
from waypost.ports.clock import Clock
from waypost.ports.limiter import Limiter
from waypost.ports.plugin import SenderPlugin
from waypost.runtime.rates import RateGate
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.stores.redis.commands import Redis

UNDER_WAY_S: Final = 0.5
"""What comes in so long is kept back of a provider's bucket: it counts what arrives, we count what leaves. So what was
held up under way and what left after it may arrive together and still fit."""


@contextmanager
def opened_limiter(config: Config, redis: Redis | None, clock: Clock) -> Iterator[Limiter]:
    """Open the limiter that a configuration asks for; StorageFull where there is no room for the file."""
    place = counted_in(config)
    if place == "memory":
        yield MemoryLimiter(clock)
        return
    if place == "redis":
        from waypost.stores.redis.limiter import RedisLimiter  # noqa: PLC0415 - its client is an optional extra

        assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
        yield _patient(config, RedisLimiter(redis, config.redis.prefix), clock)
        return
    try:
        mapped = MappedLimiter(run_dir_of(config) / "limits", clock)
    except OSError as full:
        raise StorageFull(f"no room to count limits in: {full.strerror}", ErrorCode.STORAGE_FULL) from None
    try:
        yield _patient(config, mapped, clock)
    finally:
        mapped.close()


def _patient(config: Config, shared: Limiter, clock: Clock) -> Limiter:
    return LocalWhileAway(shared, clock) if config.limits.when_away == "local" else shared


def counted_in(config: Config) -> str:
    """Return where limits are counted: as the configuration says, or where all its workers can count."""
    return config.limits.counted_in or ("file" if config.workers > 1 else "memory")


def rate_gates(config: Config, limiter: Limiter, clock: Clock, telemetry: Telemetry) -> dict[CredentialId, RateGate]:
    """Build the rate gate of each credential that has a limit."""
    return {
        name: RateGate(
            name,
            rate,
            limiter,
            clock,
            telemetry,
            spends_retry=config.apps[name.app].retry.throttle_counts_as_retry,
        )
        for name, rate in rates_of(config).items()
        if rate != Rate()
    }


def bounds_of(config: Config) -> Bounds:
    """Build the limits for callers; ConfigurationError where the configuration names an unknown route or proxy."""
    chosen = config.limits
    return Bounds(
        caller=chosen.caller.window,
        callers={
            (app, name): quota.window
            for app, each in config.apps.items()
            for name, quota in each.limits.callers.items()
        },
        apps={app: each.limits.all.window for app, each in config.apps.items()},
        user=chosen.user.window,
        address=chosen.address.window,
        failures=chosen.failures.window,
        endpoints=[
            LimitedRoute(_known(name), quota.window) for name, quota in chosen.endpoints.items() if quota.window
        ],
        trusted_proxies=[_network(n, text) for n, text in enumerate(chosen.trusted_proxies)],
        forwarded_header=chosen.forwarded_header,
    )


def for_entrypoints(config: Config, limiter: Limiter, clock: Clock) -> Limiter:
    """Wrap the limiter for entry points: where several processes count together, portions are taken ahead."""
    return limiter if counted_in(config) == "memory" else TakenAhead(limiter, clock)


def _known(name: str) -> str:
    routes = served_routes(RestSettings(), features.routes())
    templates = {f"{method} {path}" for route in routes for path in route.paths for method in route.http_methods}
    known = {re.sub(r":\w+}", "}", each) for each in templates} | {f"gRPC {method}" for method in GRPC_ACCESS}
    if name not in known:
        raise ConfigurationError(f"limits.endpoints.{name}", f"no such route{did_you_mean(name, sorted(known))}")
    return name


def _network(n: int, text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ConfigurationError(f"limits.trusted_proxies[{n}]", "is neither an address nor a network") from None


def rates_of(config: Config) -> Mapping[CredentialId, Rate]:
    """Find the limits of every credential."""
    return {
        credential: _rate(config.apps[credential.app].rates.get(credential.slot, RateSettings()), plugin)
        for credential, (plugin, _) in sections_of(config).items()
    }


def _rate(chosen: RateSettings, plugin: SenderPlugin) -> Rate:
    given = plugin.rate or TokenBucket(0, 0.0)
    size = given.size if chosen.capacity is None else chosen.capacity
    refill = given.refill_per_s if chosen.refill_per_s is None else chosen.refill_per_s
    ramp_s = given.ramp_s if chosen.ramp_s is None else chosen.ramp_s
    per_device = plugin.per_device if chosen.per_device is None else chosen.per_device.window
    if chosen.unlimited or not size:
        return Rate(None, per_device)
    kept_back = min(int(refill * UNDER_WAY_S), size // 2)
    return Rate(TokenBucket(size - kept_back, refill, ramp_s), per_device)
