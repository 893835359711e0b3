"""Limits: where they are counted, and what each provider is to get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from waypost.adapters.mapped.limiter import MappedLimiter
from waypost.adapters.memory.limiter import MemoryLimiter
from waypost.bootstrap.places import run_dir_of
from waypost.bootstrap.registry import installed
from waypost.config import AppSettings, Config
from waypost.config.settings import RateSettings
from waypost.domain.errors import ErrorCode, StorageFull, Unavailable
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.limits import Granted, Limit, Rate, TokenBucket, Wait
from waypost.ports.clock import Clock
from waypost.ports.limiter import Limiter
from waypost.ports.plugin import SenderPlugin
from waypost.runtime.rates import RateGate
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.adapters.redis.commands import Redis

UNDER_WAY_S: Final = 0.5
"""What comes in so long is kept back of a provider's bucket: it counts what arrives, we count what leaves. So what was
held up under way and what left after it may arrive together and still fit."""


class LocalWhileAway:
    """Counts in another limiter, and while that is away, in this process alone."""

    def __init__(self, shared: Limiter, clock: Clock) -> None:
        self._shared = shared
        self._own = MemoryLimiter(clock)

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter."""
        try:
            return await self._shared.take(name, limit, n)
        except Unavailable:
            return await self._own.take(name, limit, n)


@contextmanager
def opened_limiter(config: Config, redis: Redis | None, clock: Clock) -> Iterator[Limiter]:
    """Where the limits of a configuration are counted; StorageFull where there is no room for the file."""
    place = counted_in(config)
    if place == "memory":
        yield MemoryLimiter(clock)
        return
    if place == "redis":
        from waypost.adapters.redis.limiter import RedisLimiter  # noqa: PLC0415 - its client is an optional extra

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
    """Where limits are counted: as the configuration says, or where all workers of it do."""
    return config.limits.counted_in or ("file" if config.workers > 1 else "memory")


def rate_gates(config: Config, limiter: Limiter, clock: Clock, telemetry: Telemetry) -> dict[CredentialId, RateGate]:
    """What each credential that has a limit is to get."""
    return {
        name: RateGate(
            name,
            rate,
            limiter,
            clock,
            telemetry,
            spends_retry=config.apps[app].retry.throttle_counts_as_retry,
        )
        for app, rates in rates_of(config).items()
        for name, rate in rates.items()
        if rate != Rate()
    }


def rates_of(config: Config) -> Mapping[AppId, Mapping[CredentialId, Rate]]:
    """The limits of each app's credentials."""
    return {
        app: {
            CredentialId(f"{app}/{plugin.channel}"): _rate(chosen, plugin)
            for plugin in installed()
            if plugin.channel in chosen.senders
        }
        for app, chosen in config.apps.items()
    }


def _rate(app: AppSettings, plugin: SenderPlugin) -> Rate:
    chosen = app.rates.get(plugin.channel, RateSettings())
    given = plugin.rate or TokenBucket(0, 0.0)
    size = given.size if chosen.capacity is None else chosen.capacity
    refill = given.refill_per_s if chosen.refill_per_s is None else chosen.refill_per_s
    ramp_s = given.ramp_s if chosen.ramp_s is None else chosen.ramp_s
    if chosen.unlimited or not size:
        return Rate(None, chosen.per_device.window)
    kept_back = min(int(refill * UNDER_WAY_S), size // 2)
    return Rate(TokenBucket(size - kept_back, refill, ramp_s), chosen.per_device.window)
