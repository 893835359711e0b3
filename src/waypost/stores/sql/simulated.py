"""A store for simulations: what is there is read, and what would be written is in memory for as long as one lasts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

from waypost.domain.capping import Claim, Verdicts, judge
from waypost.domain.errors import StorageBroken, WaypostError
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.work import Accepted, NewNotification
from waypost.stores.sql.analytics import SqlAnalytics
from waypost.stores.sql.connection import connect_to_look, database_path
from waypost.stores.sql.contact_proofs import SqlContactProofs
from waypost.stores.sql.database import Database
from waypost.stores.sql.devices import SqlDevices
from waypost.stores.sql.digests import Member, Merging
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.faults import StoreFault, refusal
from waypost.stores.sql.feed import SqlFeed
from waypost.stores.sql.migrations import NOTED_IN, is_known
from waypost.stores.sql.preferences import SqlPreferences
from waypost.stores.sql.profiles import SqlProfiles
from waypost.stores.sql.read_pool import ReadPool
from waypost.stores.sql.settings import SqlSettings, is_postgres
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.templates import SqlTemplates
from waypost.stores.sql.user_changes import SqlUserChanges
from waypost.stores.sql.views import SqlViews
from waypost.telemetry import Telemetry

_REVISION: Final = f"SELECT version_num FROM {NOTED_IN}"  # noqa: S608 - ours


class ReadDatabase(Database):
    """A database that is read alone: no writer is opened, nothing is migrated, and nobody is joined."""

    def __init__(self, settings: SqlSettings, *, clock: Clock, telemetry: Telemetry) -> None:
        """Open the readers of *settings*; what is there has to be of today's schema."""
        self.engine = engine_of(settings)
        self.settings = settings
        self.telemetry = telemetry
        self.clock = clock
        self.loop_reader: Connection | None = None
        self._readers = ReadPool("reader", 1, self._read, telemetry)
        self._router = ReadPool("router", 1, self._read, telemetry)
        self._local = threading.local()
        self._opened: list[Connection] = []
        self._closed = False

    async def check(self) -> None:
        """Refuse, with StorageBroken, a store that is not there or not of today's schema; nothing is made."""
        await asyncio.to_thread(self.engine.look)
        try:
            found = await asyncio.to_thread(self._revision)
        except WaypostError:
            raise
        except Exception:  # noqa: BLE001 - each engine has its own for a table that is not there
            found = ""
        if not is_known(found):
            raise StorageBroken("the store has the schema of another version: `waypost migrate` brings it there")

    def _revision(self) -> str:
        if is_postgres(self.settings.url):
            return str(self._read(lambda connection: connection.execute(_REVISION).fetchall())[0][0])
        file = database_path(self.settings.url)
        if not file.exists():
            raise StorageBroken("there is no such store yet")
        with closing(connect_to_look(file)) as connection:  # a reader makes a log beside it
            return str(connection.execute(_REVISION).fetchall()[0][0])

    @property
    def state(self) -> StoreState:
        """See Database."""
        return StoreState.OK

    def _refusal_of(self, error: Exception) -> Exception:
        fault = self.engine.fault_of(error)
        return error if fault is StoreFault.OPERATION else refusal(fault)

    async def close(self) -> None:
        """Close every connection."""
        await self._readers.close()
        await self._router.close()
        for connection in self._opened:
            connection.close()


class ReadStore:
    """The parts of a store that decisions read."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.views = SqlViews(database, clock)
        self.devices = SqlDevices(database, clock)
        self.profiles = SqlProfiles(database)
        self.preferences = SqlPreferences(database)
        self.user_changes = SqlUserChanges(database)
        self.contact_proofs = SqlContactProofs(database)
        self.templates = SqlTemplates(database)
        self.analytics = SqlAnalytics(database, clock)
        self.feed = SqlFeed(database, clock)
        self.frequency = SimulatedFrequency(SimulatedWork())
        self.digests = SimulatedDigests()


class SimulatedFrequency:
    """The counts of what users would have been sent (see SqlFrequency)."""

    def __init__(self, work: SimulatedWork) -> None:
        self._work = work
        self._counted: dict[tuple[AppId, UserId], dict[str, dict[NotificationId, Instant]]] = {}

    async def claim(self, claims: Sequence[Claim]) -> list[Verdicts]:
        """Count *claims* where there is room, and say where there is none."""
        return [self._claim(each) for each in claims]

    async def accepted(self, ids: Sequence[NotificationId]) -> set[NotificationId]:
        """Return those of *ids* that were accepted."""
        return self._work.known.intersection(ids)

    def _claim(self, claim: Claim) -> Verdicts:
        counted = self._counted.setdefault((claim.app, claim.user_id), {})
        verdicts = judge(claim, counted)
        if verdicts.whole is None and not (claim.channels and claim.channels <= verdicts.channels.keys()):
            for scope, channel, _ in claim.scopes():
                if channel not in verdicts.channels:
                    counted.setdefault(scope, {})[claim.notification_id] = claim.at
        return verdicts


class SimulatedDigests:
    """The digests that would have been made (see SqlDigests)."""

    def __init__(self) -> None:
        self._ids: dict[tuple[AppId, UserId, str, Instant], NotificationId] = {}
        self._members: dict[NotificationId, dict[NotificationId, Member]] = {}
        self._digests: dict[NotificationId, dict[str, NotificationId]] = {}

    async def merge(self, merging: Sequence[Merging]) -> list[NotificationId]:
        """Put each into its digest, and return that one's id; merged again, it is in it once."""
        found = [self._ids.setdefault(each.key, each.new_id) for each in merging]
        for id_, each in zip(found, merging, strict=True):
            member = Member(each.kind, each.title, each.body)
            self._members.setdefault(id_, {}).setdefault(each.notification_id, member)
            self._digests.setdefault(each.notification_id, {})[each.channel] = id_
        return found

    async def digests_of(
        self, notifications: Sequence[NotificationId]
    ) -> Mapping[tuple[NotificationId, str], NotificationId]:
        """Return the digests that *notifications* are in, by channel."""
        return {
            (id_, channel): digest for id_ in notifications for channel, digest in self._digests.get(id_, {}).items()
        }

    async def members(self, digests: Sequence[NotificationId]) -> Mapping[NotificationId, Sequence[Member]]:
        """Return what is in each of *digests*, in the order of the night."""
        return {each: list(self._members.get(each, {}).values()) for each in digests}


class SimulatedWork:
    """The intake of what would have been accepted: each once (see Work.accept)."""

    def __init__(self) -> None:
        self.known: set[NotificationId] = set()
        """The ids of all that was accepted."""
        self._new: list[Notification] = []

    async def accept(self, arrivals: Sequence[NewNotification]) -> list[Accepted]:
        """Take *arrivals*."""
        answers: list[Accepted] = []
        for each in arrivals:
            is_new = each.notification.id not in self.known
            self.known.add(each.notification.id)
            self._new += [each.notification] if is_new else []
            answers.append(Accepted(each.notification.id, is_new))
        return answers

    def taken(self) -> list[Notification]:
        """Take out what was accepted since the last time."""
        new, self._new = self._new, []
        return new
