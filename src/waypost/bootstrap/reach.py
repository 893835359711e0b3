"""What ``check-config --connect`` finds behind the configuration."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from waypost.bootstrap.devices import look_at_devices
from waypost.bootstrap.paths import log_of
from waypost.bootstrap.shared import opened_redis
from waypost.bootstrap.sources import look_at_source
from waypost.bootstrap.stacks import check_broker
from waypost.config import Config, SourceName, SourceSettings
from waypost.domain.errors import Unavailable
from waypost.features.dashboard.settings import DashboardSettings, OidcSettings
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.settings import is_postgres


class Reached(Struct, frozen=True):
    """A server, or what keeps it from being used."""

    name: str
    """The section of the configuration."""
    what: str
    problem: str | None = None


async def reach(config: Config) -> list[Reached]:
    """Connect to every server that the configuration names."""
    found = [await _reach_redis(config)] if config.redis is not None else []
    if config.outbox.to == "kafka":
        found.append(await _reach_kafka(config))
    if is_postgres(config.store.url):
        found.append(await _reach_postgres(config))
    if config.cassandra is not None:
        found.append(await _reach_cassandra(config.cassandra))
    oidc = (config.features.get("dashboard") or DashboardSettings()).oidc
    if oidc is not None:
        found.append(await _reach_provider(oidc))
    return found + [await _reach_source(name, source) for name, source in config.sources.items()]


async def _reach_provider(settings: OidcSettings) -> Reached:
    from waypost.features.dashboard.oidc import look  # noqa: PLC0415 - its client, where it is needed

    try:
        return Reached("dashboard.oidc", await look(settings))
    except OSError as away:
        return Reached("dashboard.oidc", "away", f"dashboard.oidc.issuer: {settings.issuer} {away}")


async def _reach_source(name: SourceName, source: SourceSettings) -> Reached:
    called = f"source {name}"
    try:
        return Reached(called, await look_at_source(name, source))
    except Unavailable as away:
        return Reached(called, "away", f"{called}: {away}")


async def _reach_postgres(config: Config) -> Reached:
    engine_of(config.store)  # its client is an extra: a ConfigurationError says how to get it
    from waypost.stores.sql.postgres.check import look  # noqa: PLC0415 - as above

    try:
        found = await asyncio.to_thread(look, config.store.url)
    except Unavailable as away:
        return Reached("postgresql", "away", f"postgresql: {away}")
    said = "; ".join((f"PostgreSQL {found.version}, {found.connections} connections", *found.notes()))
    problems = "; ".join(found.problems(config.processes))
    return Reached("postgresql", said, f"postgresql: {problems}" if problems else None)


async def _reach_cassandra(settings: CassandraSettings) -> Reached:
    try:
        found = await look_at_devices(settings)
    except Unavailable as away:
        return Reached("cassandra", "away", f"cassandra: {away}")
    unsafe = "".join(f"; {each}" for each in found.unsafe())
    return Reached("cassandra", f"Cassandra {found.version}, nodes: {found.nodes}{unsafe}")


async def _reach_kafka(config: Config) -> Reached:
    try:
        return Reached("kafka", await asyncio.to_thread(check_broker, config))
    except Unavailable as away:
        return Reached("kafka", "away", f"kafka: {away}")


async def _reach_redis(config: Config) -> Reached:
    async with opened_redis(config, log_of(config)) as redis:
        assert redis is not None
        from waypost.stores.redis.check import look  # noqa: PLC0415 - its client is an optional extra

        try:
            found = await look(redis)
        except Unavailable as away:
            return Reached("redis", "away", f"redis: {away}")
    file = "append-only file" if found.append_only else "no append-only file: a restart empties it"
    what = f"Redis {found.version}, {file}, {found.eviction}"
    if found.too_old:
        return Reached("redis", what, f"redis: {found.version} is older than 7.0")
    if config.dedup and (not found.append_only or found.eviction != "noeviction"):
        return Reached(
            "redis", what, "redis: with `dedup` it needs an append-only file and noeviction, or windows end early"
        )
    return Reached("redis", what)
