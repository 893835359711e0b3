"""The place where the device registry is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.ports.devices import Devices
from waypost.runtime.ticker import every
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.stores.cassandra.check import CassandraFindings
    from waypost.stores.cassandra.settings import CassandraSettings
    from waypost.stores.sql.store import Store


@asynccontextmanager
async def opened_devices(config: Config, store: Store, slot: int, telemetry: Telemetry) -> AsyncIterator[Devices]:
    """Open the registry that the configuration names; one that is away is tried again whenever it is needed."""
    if config.devices == "store":
        yield store.devices
        return
    need_client("devices")
    from waypost.stores.cassandra.devices import CassandraDevices  # noqa: PLC0415 - its client is an optional extra
    from waypost.stores.cassandra.nodes import WATCH_S  # noqa: PLC0415 - the same

    assert config.cassandra is not None, "the configuration was checked when it was read"
    devices = CassandraDevices(config.cassandra, migrates=slot == 0, telemetry=telemetry)
    await devices.start()
    watch = None
    if slot == 0:
        watch = asyncio.create_task(every(WATCH_S, devices.nodes.look, telemetry, "registry"))
    try:
        yield devices
    finally:
        if watch is not None:
            watch.cancel()
        await devices.close()


async def migrate_devices(settings: CassandraSettings) -> tuple[int, int]:
    """Bring the tables in Cassandra to today's schema; return their revisions before and after."""
    need_client("cassandra")
    from waypost.stores.cassandra.schema import migrate  # noqa: PLC0415 - as above

    return await migrate(settings)


async def look_at_devices(settings: CassandraSettings) -> CassandraFindings:
    """Describe the cluster as it describes itself; Unavailable where it does not answer."""
    need_client("cassandra")
    from waypost.stores.cassandra.check import look  # noqa: PLC0415 - as above

    return await look(settings)


def need_client(path: str) -> None:
    """Check that the client is installed that the setting at *path* needs; else ConfigurationError says what to do."""
    try:
        import acsylla  # noqa: F401, PLC0415 - an optional extra
    except ModuleNotFoundError:
        raise ConfigurationError(path, f"its client is not installed: {how_to_install('cassandra')}") from None
