"""The features of this installation: one list, and what each part of the program makes of it.

The upper functions import no feature's parts, so that the command line and a supervisor start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from waypost.features.analytics import ANALYTICS
from waypost.features.archive import ARCHIVE
from waypost.features.audit import AUDIT
from waypost.features.balance import BALANCE
from waypost.features.bulk import BULK
from waypost.features.callbacks import CALLBACKS
from waypost.features.campaigns import CAMPAIGNS
from waypost.features.contacts import CONTACTS
from waypost.features.dashboard import DASHBOARD
from waypost.features.device_counts import DEVICE_COUNTS
from waypost.features.erasure import ERASURE
from waypost.features.feature import Feature
from waypost.features.feed import FEED
from waypost.features.growth import GROWTH
from waypost.features.keys import KEYS
from waypost.features.opt_outs import OPT_OUTS
from waypost.features.preferences import PREFERENCES
from waypost.features.receipts import RECEIPTS
from waypost.features.recovery import RECOVERY
from waypost.features.schedules import SCHEDULES
from waypost.features.segments import SEGMENTS
from waypost.features.series import SERIES
from waypost.features.templates import TEMPLATES
from waypost.features.topics import TOPICS
from waypost.features.users import USERS
from waypost.features.webhooks import WEBHOOKS

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler
    from litestar.types import ASGIApp

    from waypost.config import Config
    from waypost.domain.channel import Channel
    from waypost.domain.device import Platform
    from waypost.domain.ids import NotificationId
    from waypost.domain.notification import Notification
    from waypost.domain.recipient import FactsReader, Recipient
    from waypost.domain.routing import Renderer, Rule
    from waypost.entrypoints.live.hub import Hub
    from waypost.entrypoints.rest.api import Api, Mount
    from waypost.features.parts import FeatureDuty, Ground, Parts
    from waypost.pipeline.bulk_intake import BulkIntake
    from waypost.pipeline.intake import Intake
    from waypost.pipeline.route import Plan
    from waypost.ports.clock import Clock
    from waypost.ports.devices import Devices
    from waypost.ports.feed import FeedPages, Saying
    from waypost.ports.sending_records import SendingRecords
    from waypost.ports.work import Work
    from waypost.runtime.delivery_context import Claims
    from waypost.runtime.duties import DutyContext
    from waypost.stores.sql.added import AddedTable
    from waypost.stores.sql.store import Store
    from waypost.telemetry import Telemetry

FEATURES: tuple[Feature, ...] = (
    TEMPLATES,
    USERS,
    PREFERENCES,
    TOPICS,
    SEGMENTS,
    BULK,
    CAMPAIGNS,
    OPT_OUTS,
    ERASURE,
    ARCHIVE,
    AUDIT,
    KEYS,
    FEED,
    CONTACTS,
    RECEIPTS,
    CALLBACKS,
    WEBHOOKS,
    BALANCE,
    RECOVERY,
    SCHEDULES,
    ANALYTICS,
    SERIES,
    DEVICE_COUNTS,
    GROWTH,
    DASHBOARD,
)
"""The list of features, to which each new one is added; a message is rendered by each in this order."""
_NO_FACTS: Final[Mapping[str, Any]] = {}


def commands() -> dict[str, str]:
    """Return the place in the code of each command of a feature."""
    return {name: place for feature in FEATURES for name, place in feature.commands.items()}


def sections() -> dict[str, type[Struct]]:
    """Return the settings of each feature that has some."""
    return {feature.name: feature.settings for feature in FEATURES if feature.settings is not None}


def tables() -> list[AddedTable]:
    """List every table of a feature."""
    return [table for _, parts in _each() for table in parts.tables]


def readers() -> list[str]:
    """Name every reader of the journal."""
    return [name for _, parts in _each() for name in (*parts.readers, *parts.counters)]


def routes() -> tuple[HTTPRouteHandler, ...]:
    """List every route of a feature."""
    return tuple(route for _, parts in _each() for route in parts.routes)


def mounts(grounds: Mapping[str, Ground]) -> dict[str, Mount]:
    """Return what builds the applications of features that are used, by the path below which they answer."""
    return {
        path: _mounting(build, grounds[name])
        for name, parts in _each()
        if parts.mounts and parts.is_used(grounds[name].config)
        for path, build in parts.mounts.items()
    }


def _mounting(build: Callable[[Api, Ground, ASGIApp], ASGIApp], ground: Ground) -> Mount:
    return lambda api, inner: build(api, ground, inner)


def tags() -> dict[str, str]:
    """Return the chapters of the API reference that features begin."""
    return {name: text for _, parts in _each() for name, text in parts.tags.items()}


def rules(config: Config) -> list[Rule]:
    """List every routing rule of a feature that is used."""
    return [rule for _, parts in _each() if parts.is_used(config) for rule in parts.rules]


def renderers(config: Config) -> list[Renderer]:
    """List what features make of a message for each address."""
    return [parts.renders for _, parts in _each() if parts.renders is not None and parts.is_used(config)]


def facts_reader(grounds: Mapping[str, Ground]) -> FactsReader | None:
    """Return what reads the facts of all features; None where no feature has any.

    No feature is asked about an app that was taken out of the configuration: its facts are None.
    """
    used = {name: parts for name, parts in _each() if parts.facts is not None and parts.is_used(grounds[name].config)}
    readers = {name: partial(parts.facts, grounds[name]) for name, parts in used.items() if parts.facts is not None}
    concerns = [parts.concerns for parts in used.values()]
    if not readers:
        return None

    apps = next(iter(grounds.values())).config.apps

    async def read(notifications: Sequence[Notification]) -> Sequence[Mapping[str, Any]]:
        if not any(each is None or any(map(each, notifications)) for each in concerns):
            return [_NO_FACTS] * len(notifications)
        known = [each for each in notifications if each.app in apps]
        found = {name: await reader(known) for name, reader in readers.items()}
        of_known = iter([{name: facts[n] for name, facts in found.items()} for n in range(len(known))])
        return [next(of_known) if each.app in apps else dict.fromkeys(readers) for each in notifications]

    return read


def claims_of(grounds: Mapping[str, Ground]) -> Claims | None:
    """Return what claims for all features, one after the other; None where none claims anything."""
    used = [(parts.claims, grounds[name]) for name, parts in _each() if parts.is_used(grounds[name].config)]
    each = [partial(claims, ground) for claims, ground in used if claims is not None]
    if not each:
        return None

    async def claim(plans: Sequence[Plan], found: Mapping[NotificationId, Recipient]) -> Sequence[Plan]:
        for claims in each:
            plans = await claims(plans, found)
        return plans

    return claim


def saying(grounds: Mapping[str, Ground]) -> Saying:
    """Return what puts the words of features into notifications that their users are shown."""
    says = [partial(parts.says, grounds[name]) for name, parts in _each() if parts.says is not None]

    async def say(notifications: Sequence[Notification]) -> Sequence[Notification]:
        for each in says:
            notifications = await each(notifications)
        return notifications

    return say


def grounds_of(
    config: Config,
    store: Store,
    work: Work,
    devices: Devices,
    clock: Clock,
    telemetry: Telemetry,
    live: Hub,
    records: SendingRecords | None = None,
) -> dict[str, Ground]:
    """Build for each feature what its parts work with; the door that they share is still closed."""
    from waypost.features.parts import Door, Ground  # noqa: PLC0415 - a worker alone needs it

    common, door = (store, work, devices, clock, telemetry, config), Door()
    hears = tuple(parts.hears for _, parts in _each() if parts.hears is not None)
    shared: dict[str, Any] = {"door": door, "hears": hears}
    return {
        feature.name: Ground(*common, settings_of(config, feature), records, live, memory={}, **shared)
        for feature in FEATURES
    }


def open_door(grounds: Mapping[str, Ground], intake: Intake, bulk: BulkIntake) -> None:
    """Let the duties of features submit."""
    for ground in grounds.values():
        ground.door.open(intake, bulk)


def complete(
    grounds: Mapping[str, Ground],
    pages: FeedPages | None,
    channels: Mapping[Platform, Channel],
    families: Mapping[Channel, str],
) -> dict[str, Ground]:
    """Add what reads the first pages of feeds from a cache, and the installed channels with their families."""
    from msgspec.structs import replace  # noqa: PLC0415 - as above

    return {
        name: replace(ground, pages=pages, channels=channels, families=families) for name, ground in grounds.items()
    }


def without_memory(grounds: Mapping[str, Ground]) -> dict[str, Ground]:
    """Return *grounds* for asking what would be sent: nothing of it is remembered."""
    from msgspec.structs import replace  # noqa: PLC0415 - as above

    return {name: replace(ground, memory=None) for name, ground in grounds.items()}


def with_features(duty_context: DutyContext, grounds: Mapping[str, Ground]) -> DutyContext:
    """Add the readers, duties and erasures of features to *duty_context*."""
    from msgspec.structs import replace  # noqa: PLC0415 - as above

    from waypost.pipeline.tail import Reader  # noqa: PLC0415 - as above
    from waypost.runtime.duties import Duty  # noqa: PLC0415 - as above

    each = [(name, parts, grounds[name]) for name, parts in _each()]
    return replace(
        duty_context,
        readers=[
            *(
                Reader(
                    name,
                    partial(take, on),
                    parts.prompt is not None and parts.prompt(on.config),
                    parts.naming(on.config),
                )
                for _, parts, on in each
                for name, take in parts.readers.items()
            ),
            *(
                Reader(name, partial(take, on), keeps_position=True)
                for _, parts, on in each
                if parts.is_used(on.config)
                for name, take in parts.counters.items()
            ),
        ],
        duties=[
            Duty(duty.role, duty.name, _every_s(duty, on), partial(duty.act, on))
            for _, parts, on in each
            for duty in parts.duties
        ],
        erases=[partial(parts.erases, on) for _, parts, on in each if parts.erases is not None],
        drops={name: partial(parts.drops, on) for name, parts, on in each if parts.drops is not None},
    )


def markdown() -> str:
    """Write the table of docs/internals/features.md."""
    head = "| feature | what it is for | routes (scope) | commands | tables | journal readers | duties |\n"
    rows = [_row(feature, parts_of(feature)) for feature in FEATURES]
    return head + "|---|---|---|---|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def parts_of(feature: Feature) -> Parts:
    """Import the parts of *feature*."""
    module, _, name = feature.parts.partition(":")
    parts: Parts = getattr(import_module(module), name)
    return parts


def _each() -> Iterator[tuple[str, Parts]]:
    return ((feature.name, parts_of(feature)) for feature in FEATURES)


def _every_s(duty: FeatureDuty, ground: Ground) -> float:
    return duty.every_s(ground) if callable(duty.every_s) else duty.every_s


def settings_of(config: Config, feature: Feature) -> Any:
    """Return the configuration's section for *feature*, or its defaults."""
    if feature.name in config.features or feature.settings is None:
        return config.features.get(feature.name)
    return feature.settings()


def _row(feature: Feature, parts: Parts) -> tuple[str, ...]:
    return (
        f"`{feature.name}`",
        feature.docs,
        "<br>".join(_route(route) for route in parts.routes) or "–",
        _named(feature.commands),
        _named(table.name for table in parts.tables),
        _named((*parts.readers, *parts.counters)),
        _named(duty.name for duty in parts.duties),
    )


def _route(route: HTTPRouteHandler) -> str:
    from waypost.entrypoints.rest.answers import spoken_of  # noqa: PLC0415 - the documentation alone needs it

    access = spoken_of(route).access
    (path,), (method,) = sorted(route.paths), sorted(route.http_methods - {"OPTIONS"})
    scope = "anybody" if access is None else access.scope.value
    return f"`{method} {path.replace(':str}', '}')}` ({scope})"


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"
