"""What callers ask of one worker, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from waypost.adapters.prometheus.sink import PrometheusSink
from waypost.adapters.sql.store import Store
from waypost.bootstrap import features
from waypost.bootstrap.registry import installed
from waypost.bootstrap.senders import content_checks, registration_checks
from waypost.bootstrap.stacks import Carrier
from waypost.config import Config
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.limits import DoorLimits
from waypost.entrypoints.rest.api import Api, Readiness
from waypost.features.parts import Ground
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.explain import Explain
from waypost.pipeline.intake import Intake
from waypost.ports.dedup import Dedup
from waypost.ports.tokens import Tokens
from waypost.runtime.clock import RandomIds
from waypost.runtime.crew import Crew
from waypost.runtime.duties import Chores
from waypost.runtime.roles import Role
from waypost.runtime.worker import Worker


def intake_of(config: Config, carrier: Carrier, dedup: Dedup, crew: Crew, worker: Worker) -> Intake:
    """What takes submissions in, whatever door they come by."""
    return Intake(
        work=carrier.work,
        dedup=dedup,
        clock=crew.clock,
        ids=RandomIds(crew.clock),
        telemetry=crew.telemetry,
        defaults={app: chosen.defaults for app, chosen in config.apps.items()},
        backlog=lambda: worker.backlog,
        pressure=carrier.pressure,
        announce=worker.wake,
        checks={app: content_checks(chosen, installed()) for app, chosen in config.apps.items()},
    )


def api_of(  # noqa: PLR0913 - one of each that the API speaks of
    config: Config,
    store: Store,
    carrier: Carrier,
    chores: Chores,
    crew: Crew,
    worker: Worker,
    *,
    tokens: Tokens,
    intake: Intake,
    readiness: Callable[[], Readiness],
    limits: DoorLimits,
    metrics: PrometheusSink,
    grounds: Mapping[str, Ground],
) -> Api:
    """What the doors speak of."""
    plugins = installed()
    defaults, ids, checks = intake.defaults, intake.ids, intake.checks
    keys, clock = carrier.keys or store.keys, crew.clock
    return Api(
        intake=intake,
        views=carrier.views,
        devices=chores.devices,
        callers=Authenticator(keys, tokens, config.apps, clock, config.rest.key_cache_s, crew.telemetry),
        keys=keys,
        bulk=BulkIntake(
            store.bulk, store.bulk_views, crew.clock, ids, defaults, checks, walks_registry=config.devices == "store"
        ),
        opt_outs=store.opt_outs,
        erasures=store.erasures,
        audit=store.audit,
        marks=store.marks,
        outbox=store.outbox,
        explain=Explain(chores.devices, crew.senders, crew.routing, defaults, crew.clock, ids, checks),
        clock=crew.clock,
        telemetry=crew.telemetry,
        device_caps={app: chosen.device_cap for app, chosen in config.apps.items()},
        readiness=readiness,
        metrics=metrics.render,
        draining=lambda: worker.is_draining,
        settings=config.rest,
        routes=features.routes(),
        tags=features.tags(),
        grounds=grounds,
        limits=limits,
        operating_only=Role.API not in config.does(),
        channels=tuple(plugin.channel for plugin in plugins),
        platforms=tuple(sorted(crew.routing.channels)),
        device_checks={app: registration_checks(app, chosen, plugins) for app, chosen in config.apps.items()},
    )
