"""What follows from settled work, off the delivery path: dead tokens go, uses are noted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shows import shows
from tests.unit.runtime.bench import APP, LaneBench
from waypost.domain.channel import Channel
from waypost.domain.device import USE_NOTED_MS, Platform, Registration
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId, token_hash
from waypost.domain.moves import DeliveryMoved
from waypost.domain.notification import Lane
from waypost.domain.outcome import Gone, Taken
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import SECOND_MS, Instant
from waypost.pipeline.report import PART, READER, Unreported, registry_news, report
from waypost.ports.devices import Eviction, Use
from waypost.ports.journal import JournalRow
from waypost.runtime.delivery_context import DeliveryContext

pytestmark = pytest.mark.asyncio

ANN = UserId("ann")


class Registry:
    """The registry with its calls noted."""

    def __init__(self, devices: Any) -> None:
        self._devices = devices
        self.calls: list[str] = []
        self.asked: list[int] = []
        """How many evictions each call asked for."""
        self.deleted: list[int] = []
        self.poison = ""
        """The token that cannot be evicted."""

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._devices, name)

    async def evict(self, evictions: Sequence[Eviction]) -> list[tuple[AppId, UserId]]:
        """Count what each batch came to."""
        self.calls.append("evict")
        if token_hash(self.poison) in [each.token_hash for each in evictions]:
            raise ValueError(self.poison)
        self.asked.append(len(evictions))
        owners: list[tuple[AppId, UserId]] = await self._devices.evict(evictions)
        self.deleted.append(len(owners))
        return owners


class RegistryBench(LaneBench):
    """A lane that sees its registry through a witness."""

    def __init__(self, board_path: Path) -> None:
        super().__init__(board_path)
        self.registry = Registry(self.devices)
        self.began = self.clock.now()

    def context(self) -> DeliveryContext:
        """With the witness."""
        return msgspec.structs.replace(super().context(), devices=self.registry)

    async def told(self, count: int = 1) -> None:
        """Accept *count* notifications for ann and let the lane deliver them; time passes in between."""
        self.clock.advance(SECOND_MS)
        for _ in range(count):
            await self.accept(ANN)
        async with self.running() as loop:
            await self.settled(loop)

    async def report(self, deleting: Collection[AppId] = ()) -> None:
        """Tail the journal to its end."""
        while (await report(self.journal, self.registry, deleting)).rows:
            pass

    async def active(self) -> list[str]:
        """The tokens of ann that would be sent to."""
        return [device.token for device in await self.devices.of_user(APP, ANN)]


@pytest.fixture
def bench(tmp_path: Path) -> RegistryBench:
    """A lane on an empty store."""
    return RegistryBench(tmp_path / "board")


@shows("S1-39", "S1-40", "S1-41", "S3-58")
async def test_a_dead_token_is_deactivated_after_the_event_and_not_by_the_sender(bench: RegistryBench) -> None:
    """The delivery path only reads the registry (requirements S1-40, S1-41)."""
    bench.apns.answer = lambda delivery: Gone("Unregistered")
    await bench.register(ANN, Channel("apns"), Channel("fcm"))
    await bench.told()
    assert set(bench.registry.calls) == {"for_users"}
    assert len(await bench.active()) == 2
    await bench.report()
    assert await bench.active() == ["token-ann-fcm"]


@shows("S1-40")
@pytest.mark.parametrize(("deleting", "rows"), [([APP], 1), ([AppId("other")], 2), ([], 2)])
async def test_the_row_goes_with_the_token_where_its_app_keeps_none(
    bench: RegistryBench, deleting: Collection[AppId], rows: int
) -> None:
    """Requirement S1-40, where the setting ``dead_devices`` is ``delete``."""
    bench.apns.answer = lambda delivery: Gone("Unregistered")
    await bench.register(ANN, Channel("apns"), Channel("fcm"))
    await bench.told()
    await bench.report(deleting)
    assert await bench.active() == ["token-ann-fcm"]
    assert len(await bench.devices.of_user(APP, ANN, inactive=True)) == rows


@shows("S1-41", "S1-42")
async def test_a_thousand_answers_for_one_token_delete_once(bench: RegistryBench) -> None:
    """Requirements S1-42: a page of the journal asks for it once, however often it tells of it."""
    bench.budgets[Lane.NORMAL] = 1_000
    bench.apns.answer = lambda delivery: Gone("Unregistered")
    await bench.register(ANN, Channel("apns"))
    await bench.told(1_000)
    assert len(bench.apns.sent) == 1_000
    assert set(bench.registry.calls) == {"for_users"}, "nothing is written to it on the way of a delivery (S1-41)"
    await bench.report()
    assert (set(bench.registry.asked), sum(bench.registry.deleted)) == ({1}, 1)


async def test_a_token_that_cannot_be_evicted_keeps_no_other_from_being(bench: RegistryBench) -> None:
    """Nor from being noted as used; the page is left behind, and what was passed over is told of."""
    bench.registry.poison = "token-ann-apns"
    bench.apns.answer = bench.fcm.answer = lambda delivery: Gone("Unregistered")
    await bench.register(ANN, Channel("apns"), Channel("fcm"))
    await bench.told()
    page = await report(bench.journal, bench.registry)
    assert await bench.active() == ["token-ann-apns"]
    assert (page.evicted, page.failed) == (1, (Unreported(APP, "ValueError"),))
    assert (await report(bench.journal, bench.registry)).rows == 0


@shows("S1-43")
async def test_the_new_token_of_the_device_stays(bench: RegistryBench) -> None:
    """It was registered while the old one was being sent to (requirements S1-43)."""
    bench.apns.answer = lambda delivery: Gone("Unregistered")
    await bench.register(ANN, Channel("apns"))
    await bench.told()
    renewed = Registration(APP, ANN, DeviceId("ann-apns"), Platform("ios"), "new-token")
    await bench.devices.upsert(renewed, bench.clock.advance(SECOND_MS), cap=10)
    await bench.report()
    assert await bench.active() == ["new-token"]


@shows("S3-56")
async def test_a_successful_send_moves_the_last_use(bench: RegistryBench) -> None:
    """Requirements S3-56: later than the registration, and not by a failure."""
    await bench.register(ANN, Channel("apns"), Channel("fcm"))
    bench.apns.answer = lambda delivery: Taken("p")
    bench.fcm.answer = lambda delivery: Gone("UNREGISTERED", since=bench.began)
    await bench.told()
    await bench.report()
    used = {device.token: device.last_used_at for device in await bench.devices.of_user(APP, ANN)}
    assert used == {"token-ann-apns": bench.clock.now(), "token-ann-fcm": bench.began}


def use_of(user: str, at: int) -> DeliveryMoved:
    """Make the move of a delivery by which a device was used."""
    to = (APP, NotificationId(bytes(16)), UserId(user), 0, DeviceId("d"), 1)
    return DeliveryMoved(*to, DeliveryStatus.PENDING, DeliveryStatus.SENT, Instant(at), is_use=True)


class LongPage:
    """A journal with one page that tells of many uses, and the registry that is told of them."""

    def __init__(self, rows: int, uses_a_row: int) -> None:
        users = iter(range(rows * uses_a_row))
        moves = [tuple(use_of(f"user {next(users)}", 1) for _ in range(uses_a_row)) for _ in range(rows)]
        self.rows = [JournalRow(n, each) for n, each in enumerate(moves, start=1)]
        self.reached = 0
        self.told: list[int] = []
        self.away_after = rows

    async def position(self, _: str) -> int:
        """Return the last row that was told of."""
        return self.reached

    async def read(self, after: int, n: int) -> list[JournalRow]:
        """Read what comes after that."""
        return self.rows[after : after + n]

    async def advance(self, _: str, position: int) -> None:
        """Note it."""
        self.reached = position

    async def evict(self, evictions: Sequence[Eviction]) -> None:
        """Refuse: there are none."""
        raise NotImplementedError(evictions)

    async def touch(self, uses: Sequence[Use]) -> None:
        """Count the uses told together, or be away."""
        if len(self.told) == self.away_after:
            raise Unavailable("away")
        self.told.append(len(uses))


async def test_the_registry_is_told_of_a_long_page_in_parts_and_after_an_error_of_all_of_it_again() -> None:
    page: Any = LongPage(rows=8, uses_a_row=PART // 2)
    page.away_after = 2
    with pytest.raises(Unavailable):
        await report(page, page)
    assert (page.told, page.reached) == ([PART] * 2, 0)
    page.away_after = 6
    assert (await report(page, page)).rows == 8
    assert (page.told, page.reached) == ([PART] * 6, 8)


async def test_uses_come_in_the_order_of_the_registry() -> None:
    """Each once, with the latest time: so each page of it is written once."""
    said = [("bob", 3), ("ann", 1), ("bob", 2), ("cyd", 4), ("ann", 5)]
    moves = [use_of(user, at) for user, at in said]
    assert [(use.user_id, use.at) for use in registry_news(moves).uses] == [("ann", 5), ("bob", 3), ("cyd", 4)]


async def test_a_device_in_use_is_noted_once_an_hour(bench: RegistryBench) -> None:
    """A row of the registry is not written for each delivery to it."""
    await bench.register(ANN, Channel("apns"))
    bench.apns.answer = lambda delivery: Taken("p")
    noted = []
    for _ in range(3):
        await bench.told()
        await bench.report()
        noted += [device.last_used_at for device in await bench.devices.of_user(APP, ANN)]
        bench.clock.advance(USE_NOTED_MS // 2)
    assert noted[0] == noted[1]
    assert noted[2] is not None
    assert noted[0] is not None
    assert noted[2] - noted[0] >= USE_NOTED_MS


async def test_a_page_that_was_read_is_not_read_again(bench: RegistryBench) -> None:
    await bench.register(ANN, Channel("apns"))
    await bench.told()
    await bench.report()
    position = await bench.journal.position(READER)
    assert position > 0
    assert (await report(bench.journal, bench.registry)).rows == 0
    assert await bench.journal.position(READER) == position
