"""The check of what a service opens: ``serve`` makes it before it starts workers, ``check-config`` in place of that."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from waypost.bootstrap.fallbacks import check_fallbacks
from waypost.bootstrap.receipts import receipt_links
from waypost.bootstrap.senders import check_default_channels
from waypost.config import Config, Stack
from waypost.domain.errors import ConfigurationError, ErrorCode, StorageFull, Unavailable
from waypost.domain.extras import how_to_install
from waypost.features.archive.settings import archives, check_archive
from waypost.features.contacts.settings import check_contacts
from waypost.features.dashboard.settings import DashboardSettings, check_dashboard
from waypost.features.preferences.settings import check_preferences
from waypost.runtime.roles import Role
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.location import check_location

_MODULE_OF = {
    "redis": "hiredis",
    "kafka": "confluent_kafka",
    "cassandra": "acsylla",
    "grpc": "grpc",
    "archive": "pyarrow",
    "dashboard": "argon2",
    "otel": "opentelemetry.exporter.otlp.proto.http",
}
"""What each extra installs."""
_EXTRA_OF_SECTION = {"redis": "redis", "traces": "otel"}
"""What a section takes, once it is there."""


def look(config: Config) -> str:
    """Find out whether a service could open what it needs, and name the engine of its store; nothing is written.

    ConfigurationError, StorageBroken or Unavailable where it could not.
    """
    check_settings(config)
    return look_at_store(config)


def check_settings(config: Config) -> None:
    """Refuse, with ConfigurationError, settings that no service could start with, whatever its store is."""
    for path, extra in missing_extras(config):
        raise ConfigurationError(path, f"its client is not installed: {how_to_install(extra)}")
    check_default_channels(config)
    check_fallbacks(config)
    check_archive(config)
    check_contacts(config)
    check_dashboard(config)
    check_preferences(config)
    receipt_links(config)


def look_at_store(config: Config) -> str:
    """Find out whether a service could open its store, and name its engine; errors as of ``look``."""
    check_location(config.store)
    engine = engine_of(config.store)
    engine.refuse_workers(config.workers)
    return engine.look()


def require(config: Config) -> None:
    """Refuse, once and for all workers, what ``look`` refuses.

    Only a ledger may be away, and a full disk is a worker's to find: it gives up the reserve.
    """
    try:
        look(config)
    except StorageFull:
        return
    except Unavailable as away:
        if config.stack is not Stack.LOG or away.code is not ErrorCode.STORAGE_AWAY:
            raise


def missing_extras(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the settings that take a client which is not installed, each with the extra that brings it."""
    return ((path, extra) for path, extra in _extras_of(config) if not _is_installed(_MODULE_OF[extra]))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package around it
        return False


def _extras_of(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the settings that take a client which is not always there, each with the extra that brings it."""
    yield from ((name, extra) for name, extra in _EXTRA_OF_SECTION.items() if getattr(config, name) is not None)
    if config.stack is Stack.LOG or config.outbox.to == "kafka":
        yield "kafka", "kafka"
    for name in ("devices", "feeds"):
        if getattr(config, name) == "cassandra":
            yield name, "cassandra"
    if archives(config):
        yield "archive.to", "archive"
    if Role.API not in config.does():
        return
    if config.grpc.listen is not None:
        yield "grpc", "grpc"
    if (config.features.get("dashboard") or DashboardSettings()).accounts:
        yield "dashboard.accounts", "dashboard"
    for name, chosen in config.sources.items():
        extra = "kafka" if chosen.redis is None else "redis"
        yield f"sources.{name}.{extra}", extra
