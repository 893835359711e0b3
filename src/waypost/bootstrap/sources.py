"""The intakes of streams: each source of the configuration, read for its app."""

from __future__ import annotations

from collections.abc import Mapping

from waypost.config import Config, SourceName, SourceSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.domain.ids import CallerId
from waypost.domain.scope import Scope
from waypost.entrypoints.limits import EntrypointLimits
from waypost.entrypoints.streams.stream_intake import StreamIntake
from waypost.pipeline.intake import Caller, Intake
from waypost.ports.source import Source
from waypost.runtime.roles import Role
from waypost.telemetry import Telemetry

_MAY = frozenset({Scope.SEND, Scope.SEND_ANY_USER})
"""The rights of whoever may write into the stream: those of the app's backend."""


def stream_intakes(
    config: Config, intake: Intake, slot: int, telemetry: Telemetry, limits: EntrypointLimits
) -> Mapping[SourceName, StreamIntake]:
    """Build an intake for each source, where this process takes requests; ConfigurationError where one cannot be."""
    if Role.API not in config.does():
        return {}
    intakes = {}
    for name, chosen in config.sources.items():
        source = _source(name, chosen, measures=slot == 0)
        caller = Caller(chosen.app, CallerId(chosen.caller or f"source:{name}"), _MAY)
        intakes[name] = StreamIntake(name, source, intake, caller, telemetry, chosen.batch, limits)
    return intakes


async def look_at_source(name: SourceName, chosen: SourceSettings) -> str:
    """Ask whether a source can be read, and say what it is; ConfigurationError, Unavailable."""
    return await _source(name, chosen, measures=False).look()


def _source(name: SourceName, chosen: SourceSettings, *, measures: bool) -> Source:
    try:
        if chosen.redis is not None:
            from waypost.stores.redis.source import RedisSource  # noqa: PLC0415 - its client is an optional extra

            return RedisSource(chosen.redis, measures=measures)
        from waypost.stores.kafka.source import KafkaSource  # noqa: PLC0415 - as above

        assert chosen.kafka is not None, "the configuration was checked when it was read"
        return KafkaSource(chosen.kafka)
    except ConfigurationError as wrong:
        raise ConfigurationError(f"sources.{name}.{wrong.path}", wrong.why) from None
    except ModuleNotFoundError as missing:
        extra = "redis" if chosen.redis is not None else "kafka"
        if missing.name is None or missing.name.startswith("waypost"):
            raise
        why = f"its client is not installed: {how_to_install(extra)}"
        raise ConfigurationError(f"sources.{name}.{extra}", why) from None
