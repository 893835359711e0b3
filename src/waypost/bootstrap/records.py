"""The records that senders keep beside the store, where the configuration asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.features.recovery import RECOVERY
from waypost.features.recovery.settings import RecoverySettings
from waypost.ports.clock import Clock
from waypost.ports.sending_records import SendingRecords
from waypost.ports.work import Leases

if TYPE_CHECKING:
    from waypost.stores.redis.commands import Redis


def check_records(config: Config) -> None:
    """Raise ConfigurationError where records are asked for, and there is nowhere to keep them."""
    if _settings(config).second_record and config.redis is None:
        raise ConfigurationError("redis", "is required where `recovery.second_record` is true")


def records_of(config: Config, redis: Redis | None) -> SendingRecords | None:
    """Open the records, if there are any."""
    settings = _settings(config)
    if not settings.second_record:
        return None
    from waypost.stores.redis.sending_records import RedisSendingRecords  # noqa: PLC0415 - its client is an extra

    assert redis is not None, "the configuration was checked when it was read"
    return RedisSendingRecords(redis, settings.lock_ttl_s, settings.record_ttl_s)


def recorded(work: Leases, records: SendingRecords | None, clock: Clock) -> Leases:
    """Let senders keep the records of what they lease; without records, nothing is between."""
    if records is None:
        return work
    from waypost.runtime.recorded_leases import RecordedLeases  # noqa: PLC0415 - needed where it is asked for

    return RecordedLeases(work, records, clock)


def _settings(config: Config) -> RecoverySettings:
    found = config.features.get(RECOVERY.name, RecoverySettings())
    assert isinstance(found, RecoverySettings), "it was built as that"
    return found
