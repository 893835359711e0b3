"""The API of one worker, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from waypost.adapters.prometheus.sink import PrometheusSink
from waypost.bootstrap import features
from waypost.bootstrap.registry import families, installed
from waypost.bootstrap.senders import content_checks, registration_checks, sections_of
from waypost.bootstrap.stacks import StackParts
from waypost.config import Config
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.limits import EntrypointLimits
from waypost.entrypoints.live.hub import Hub
from waypost.entrypoints.rest.api import Api, Readiness
from waypost.features.archive.parts import archive_of
from waypost.features.feed import live_routes
from waypost.features.feed.inapp import dismissing
from waypost.features.parts import Ground
from waypost.pipeline.best_hours import CountedHours
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.explain import Explain
from waypost.pipeline.feed import mark
from waypost.pipeline.intake import Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.pipeline.zones import zones_of
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.tokens import TokenVerifier
from waypost.runtime.clock import RandomIds
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.detours import in_order
from waypost.runtime.duties import DutyContext
from waypost.runtime.roles import Role
from waypost.runtime.worker import Worker
from waypost.stores.sql.outbox_view import SqlOutboxView
from waypost.stores.sql.store import Store


def intake_of(
    config: Config,
    store: Store,
    stack_parts: StackParts,
    dedup: Dedup,
    context: DeliveryContext,
    devices: Devices,
    worker: Worker,
) -> Intake:
    """Build the intake, which takes submissions in, whatever entry point they come by."""
    return Intake(
        work=stack_parts.work,
        dedup=dedup,
        clock=context.clock,
        ids=RandomIds(context.clock),
        telemetry=context.telemetry,
        defaults={app: chosen.typed_defaults for app, chosen in config.apps.items()},
        direct=DirectDevices(
            devices, {app: registration_checks(app, chosen, installed()) for app, chosen in config.apps.items()}
        ),
        templates=StoredTemplates(store.templates),
        backlog=lambda: worker.backlog,
        pressure=stack_parts.pressure,
        refused=store.balance.refused,
        announce=worker.wake,
        checks={app: content_checks(chosen, installed()) for app, chosen in config.apps.items()},
        zones=partial(zones_of, store.profiles, {app: chosen.time_zone for app, chosen in config.apps.items()}),
        habits=CountedHours(store.analytics, context.clock).habits,
        tracing=context.tracing,
    )


def api_of(  # noqa: PLR0913 - one of each that the API speaks of
    config: Config,
    store: Store,
    stack_parts: StackParts,
    duty_context: DutyContext,
    context: DeliveryContext,
    worker: Worker,
    *,
    tokens: TokenVerifier,
    intake: Intake,
    readiness: Callable[[], Readiness],
    limits: EntrypointLimits,
    metrics: PrometheusSink,
    grounds: Mapping[str, Ground],
    hub: Hub,
) -> Api:
    """Build what the entry points call."""
    plugins = installed()
    defaults, ids, checks = intake.defaults, intake.ids, intake.checks
    keys, clock = stack_parts.keys or store.keys, context.clock
    return Api(
        intake=intake,
        views=stack_parts.views,
        archive=archive_of(grounds["archive"]),
        devices=duty_context.devices,
        callers=Authenticator(keys, tokens, config.apps, clock, config.rest.key_cache_s, context.telemetry),
        keys=keys,
        bulk=BulkIntake(
            store.bulk,
            store.bulk_views,
            context.clock,
            ids,
            store.templates,
            defaults,
            checks,
            walks_registry=config.devices == "store",
            zones={app: chosen.time_zone for app, chosen in config.apps.items()},
            segments=store.segments,
        ),
        opt_outs=store.opt_outs,
        erasures=store.erasures,
        audit=store.audit,
        mark=partial(mark, store.feed, stack_parts.work, clock, hub, dismissing(config)),
        say=features.saying(grounds),
        outbox=SqlOutboxView(store.database, families() if config.outbox.topics == "channels" else None),
        explain=Explain(
            duty_context.devices,
            intake.direct,
            intake.templates,
            context.senders,
            context.routing,
            defaults,
            context.clock,
            ids,
            checks,
            features.facts_reader(features.without_memory(grounds)),
            partial(in_order, context.fallbacks, context.gates),
            intake.clocks,
        ),
        clock=context.clock,
        telemetry=context.telemetry,
        device_caps={app: chosen.device_cap for app, chosen in config.apps.items()},
        readiness=readiness,
        metrics=metrics.render,
        draining=lambda: worker.is_draining,
        settings=config.rest,
        routes=features.routes(),
        mounts=features.mounts(grounds),
        tags=features.tags(),
        grounds=grounds,
        limits=limits,
        operating_only=Role.API not in config.does(),
        also=frozenset({live_routes.PATH}) if Role.GATEWAY in config.does() else frozenset(),
        channels=tuple(plugin.channel for plugin in plugins),
        platforms=tuple(sorted(context.routing.channels)),
        callbacks={
            credential: partial(plugin.callback, section)
            for credential, (plugin, section) in sections_of(config).items()
            if plugin.callback is not None
        },
        canonical={platform: plugin.canonical for plugin in plugins for platform in plugin.platforms},
        device_checks={app: registration_checks(app, chosen, plugins) for app, chosen in config.apps.items()},
    )
