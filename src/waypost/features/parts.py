"""The parts that a feature adds to each worker: tables, routes, journal readers, duties, and erasure of its rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Struct, field

from waypost.config import Config
from waypost.domain.channel import Channel
from waypost.domain.device import Platform
from waypost.domain.errors import Unavailable
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.domain.routing import Renderer, Rule
from waypost.domain.time import Instant
from waypost.entrypoints.live.hub import Hub
from waypost.entrypoints.rest.api import Api
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.intake import Intake
from waypost.pipeline.route import Plan
from waypost.ports.clock import Clock
from waypost.ports.devices import Devices
from waypost.ports.erasure import Erasure
from waypost.ports.feed import FeedPages
from waypost.ports.journal import JournalRow
from waypost.ports.sending_records import SendingRecords
from waypost.ports.work import Work
from waypost.runtime.roles import Role
from waypost.runtime.ticker import Rest
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.store import Store
from waypost.stores.sql.user_events import Hears
from waypost.telemetry import Telemetry


class Door:
    """The way in for what features submit themselves; it opens once the intake of the process stands."""

    def __init__(self) -> None:
        self._intakes: tuple[Intake, BulkIntake] | None = None

    def open(self, intake: Intake, bulk: BulkIntake) -> None:
        """Let features submit from now on."""
        self._intakes = intake, bulk

    @property
    def intake(self) -> Intake:
        """The intake; Unavailable before it stands."""
        return self._opened()[0]

    @property
    def bulk(self) -> BulkIntake:
        """The intake of bulk jobs; Unavailable before it stands."""
        return self._opened()[1]

    def _opened(self) -> tuple[Intake, BulkIntake]:
        if self._intakes is None:
            raise Unavailable("the process is still starting")
        return self._intakes


class Ground(Struct, frozen=True):
    """The stores, clock and settings that the parts of one feature work with in a worker."""

    store: Store
    work: Work
    devices: Devices
    clock: Clock
    telemetry: Telemetry
    config: Config
    settings: Any
    """The settings of the feature's section; its defaults where the configuration says nothing."""
    records: SendingRecords | None = None
    """The records that senders keep beside the store; None where they keep none."""
    live: Hub | None = None
    """The live connections of this process, and the way to those of others; None where nobody can connect."""
    pages: FeedPages | None = None
    """The cache in front of feeds; None where there is none."""
    memory: dict[type, Any] | None = None
    """What its parts remember of what this process sends, by type; None where nothing is sent, as for ``explain``."""
    door: Door = field(default_factory=Door)
    """The way in for what its duties submit."""
    channels: Mapping[Platform, Channel] = {}
    """The channel that serves each platform."""
    families: Mapping[Channel, str] = {}
    """The family of each channel that is installed; a channel that is missing is its own."""
    hears: Sequence[Hears] = ()
    """The functions of features that hear of tracked events."""


class FeatureDuty(Struct, frozen=True):
    """A task that one process of the installation at a time repeats."""

    name: str
    role: Role
    """The role whose holder does the duty."""
    every_s: float | Callable[[Ground], float]
    """Seconds between two acts, or how to find them in the settings."""
    act: Callable[[Ground], Awaitable[Rest | None]]
    """The task; it may rest where it says so."""


class Parts(Struct, frozen=True, kw_only=True):
    """The parts of one feature; each is read by one line of ``bootstrap/features.py``."""

    tables: tuple[AddedTable, ...] = ()
    routes: tuple[HTTPRouteHandler, ...] = ()
    """The routes; each says by ``speaks`` which scope it takes."""
    mounts: Mapping[str, Callable[[Api, Ground, ASGIApp], ASGIApp]] = {}
    """What builds an application that answers everything below a path, on the API past authentication, by that path.

    Only where ``is_used``. It is no part of the API: it knows its callers by itself."""
    tags: Mapping[str, str] = {}
    """The chapters of the API reference that its routes begin."""
    readers: Mapping[str, Callable[[Ground, Sequence[JournalRow]], Awaitable[None]]] = {}
    """Told each row of the journal at least once, by the name that its position is stored under."""
    naming: Callable[[Config], Collection[DeviceId] | None] = lambda _: None
    """The devices whose moves alone its readers look for with this configuration; None where they look at all."""
    counters: Mapping[str, Callable[[Ground, Sequence[JournalRow]], Awaitable[None]]] = {}
    """Told as ``readers`` are, where ``is_used``; each stores its position with what it writes, and so counts once.

    ``stores.sql.reached.go_behind`` does that.
    """
    hears: Hears | None = None
    """Hears of tracked events, in the transaction that counts them: the app's own, and what became of notifications."""
    prompt: Callable[[Config], bool] | None = None
    """Tells whether somebody waits for what its readers do: then they are told as soon as something is written."""
    duties: tuple[FeatureDuty, ...] = ()
    is_used: Callable[[Config], bool] = lambda _: True
    """Whether its rules, facts, renderer and counters are used with this configuration: what is off costs nothing."""
    rules: tuple[Rule, ...] = ()
    """The routing rules, asked after those of channels and before a credential is chosen."""
    facts: Callable[[Ground, Sequence[Notification]], Awaitable[Sequence[Any]]] | None = None
    """Reads what its rules ask of the users of notifications, once for a batch, one answer for each.

    It is in ``Recipient.facts`` under the feature's name.
    """
    claims: Callable[[Ground, Sequence[Plan], Mapping[NotificationId, Recipient]], Awaitable[Sequence[Plan]]] | None = (
        None
    )
    """Claims what deliveries need that others may take first, before they are handed over; see ``Claims``."""
    concerns: Callable[[Notification], bool] | None = None
    """Whether facts are read where a batch has this notification; None where every batch asks for them."""
    renders: Renderer | None = None
    """Turns the message for all targets into the one for an address."""
    says: Callable[[Ground, Sequence[Notification]], Awaitable[Sequence[Notification]]] | None = None
    """Puts its words into notifications that their users are shown: what is stored may only name them."""
    erases: Callable[[Ground, Erasure], Awaitable[None]] | None = None
    """Removes a user from its rows; may be repeated."""
    drops: Callable[[Ground, Instant], Awaitable[int]] | None = None
    """Deletes, at this time, a page of at most ``pipeline.sweep.PAGE`` rows that are old; how many it was."""
