"""What was read on one device is told to the others: on every engine, once or again, never not at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.bench import APP, Bench, marking, notification
from tests.contract.sql import SqlUnderTest
from waypost.channels.inapp.settings import CHANNEL, InappSettings
from waypost.config import AppSettings, Config
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Kind
from waypost.domain.device import EMAIL, Platform, Registration
from waypost.domain.ids import DeviceId, UserId, format_id
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Sent
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, SECOND_MS, later
from waypost.features.feed.dismissing import USERS_AT_ONCE, tell_reads
from waypost.features.parts import Ground
from waypost.ports.feed import Mark
from waypost.stores.sql.notification_reads import Read

pytestmark = pytest.mark.asyncio
ANN, IOS = UserId("ann"), Platform("ios")


@pytest_asyncio.fixture
async def bench(ledger_store: SqlUnderTest) -> Bench:
    """One worker on an empty store."""
    return Bench(ledger_store, (await ledger_store.open_workers(1))[0])


@pytest.fixture
def ground(bench: Bench, ledger_store: SqlUnderTest) -> Ground:
    """An app whose reads are told."""
    app = AppSettings(senders={CHANNEL: InappSettings(dismiss=True)})
    families = {Channel("apns"): "push", Channel("email"): "email"}
    return replace(ledger_store.ground_of(bench.worker), config=Config(apps={APP: app}), families=families)


async def registered(bench: Bench, device: str, platform: Platform = IOS) -> None:
    said = Registration(APP, ANN, DeviceId(device), platform, f"token-of-{device}")
    await bench.store.devices.upsert(said, bench.now, 0)


async def read(bench: Bench, *made: Notification, mark: Mark = Mark.READ, device: str | None = None) -> None:
    for each in made:
        told = marking(each, mark, bench.now)
        told = replace(told, is_told=True, device_id=None if device is None else DeviceId(device))
        assert await bench.store.feed.mark(told)


async def pushes(bench: Bench) -> list[Notification]:
    """The pushes that tell of reads and are still to be sent."""
    return [item.notification for item in (await bench.lease(lane=Lane.SILENT)).items]


def named(push: Notification) -> list[str]:
    found: Sequence[str] = push.content.data["waypost"]["reads"]
    return sorted(found)


async def test_all_that_a_user_read_is_told_by_one_silent_push(bench: Bench, ground: Ground) -> None:
    await registered(bench, "phone")
    made = [await bench.accepted() for _ in range(3)]
    await read(bench, *made)
    await tell_reads(ground)
    await tell_reads(ground)
    (push,) = await pushes(bench)
    assert (push.kind, push.user_id, push.device_ids) == (Kind.SILENT, ANN, ())
    assert named(push) == sorted(format_id(each.id) for each in made)


async def test_a_crash_before_it_is_noted_tells_the_same_push_again(
    bench: Bench, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the same id: it is sent once all the same."""
    await registered(bench, "phone")
    await read(bench, await bench.accepted())

    async def dies(reads: Sequence[Read]) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(ground.store.notification_reads, "told", dies)
        with pytest.raises(ConnectionError):
            await tell_reads(ground)
    assert len(await ground.store.notification_reads.pending(10)) == 1
    await tell_reads(ground)
    assert len(await pushes(bench)) == 1
    assert await ground.store.notification_reads.pending(10) == []


async def test_what_is_read_anew_while_it_is_told_is_told_again(bench: Bench, ground: Ground) -> None:
    made = await bench.accepted()
    await read(bench, made)
    (before,) = await ground.store.notification_reads.pending(10)
    bench.clock.advance(SECOND_MS)
    await read(bench, made, mark=Mark.DELETED)
    await ground.store.notification_reads.told(before.reads)
    (left,) = await ground.store.notification_reads.pending(10)
    assert [(each.notification_id, each.at) for each in left.reads] == [(made.id, bench.now)]


async def test_what_was_read_is_not_sent_any_more_where_it_still_waits(bench: Bench, ground: Ground) -> None:
    """What was marked as unread again meanwhile is sent, and not told of; an e-mail is sent all the same."""
    await registered(bench, "phone")
    waits, again, mailed = (notification(bench.now, scheduled_at=later(bench.now, HOUR_MS)) for _ in range(3))
    mailed = replace(mailed, content=replace(mailed.content, channels=(ChannelStep("push"), ChannelStep("email"))))
    waits = replace(waits, content=replace(waits.content, channels=(ChannelStep("apns"),)))
    await bench.accept(waits, again, mailed)
    await read(bench, waits, again, mailed)
    await bench.store.feed.mark(marking(again, Mark.UNREAD, bench.now))
    await tell_reads(ground)
    assert await bench.status(waits) is NotificationStatus.CANCELLED
    assert await bench.status(again) is NotificationStatus.SCHEDULED
    assert await bench.status(mailed) is NotificationStatus.SCHEDULED
    (push,) = await pushes(bench)
    assert named(push) == sorted([format_id(waits.id), format_id(mailed.id)])


async def test_a_newer_push_takes_the_place_of_one_that_is_not_sent_yet_and_tells_both(
    bench: Bench, ground: Ground
) -> None:
    await registered(bench, "phone")
    first, second = await bench.accepted(), await bench.accepted()
    await read(bench, first)
    await tell_reads(ground)
    bench.clock.advance(SECOND_MS)
    await read(bench, second, mark=Mark.DELETED)
    await tell_reads(ground)
    (push,) = await pushes(bench)
    assert named(push) == sorted([format_id(first.id), format_id(second.id)])


async def test_the_device_that_it_was_read_on_gets_no_push(bench: Bench, ground: Ground) -> None:
    """Nor do addresses of people; where it was read on several, all hear of it."""
    first, second, third = [await bench.accepted() for _ in range(3)]
    await registered(bench, "phone")
    await registered(bench, "contact:email", EMAIL)
    await read(bench, first, device="phone")
    await tell_reads(ground)
    assert await pushes(bench) == []
    await registered(bench, "tablet")
    await read(bench, second, device="phone")
    await tell_reads(ground)
    (push,) = await pushes(bench)
    assert push.device_ids == ("tablet",)
    bench.clock.advance(SECOND_MS)
    await read(bench, third, device="tablet")
    await read(bench, await bench.accepted(), device="phone")
    await tell_reads(ground)
    assert [each.device_ids for each in await pushes(bench)] == [()]


async def test_users_whose_app_does_not_want_it_leave_nothing(bench: Bench, ground: Ground) -> None:
    """Not a row either: the marking says whether it is to be told."""
    made = await bench.accepted()
    assert await bench.store.feed.mark(marking(made, Mark.READ, bench.now))
    assert await ground.store.notification_reads.pending(10) == []
    await read(bench, made := await bench.accepted())
    await tell_reads(replace(ground, config=Config(apps={})))
    (pending,) = await ground.store.notification_reads.pending(10)
    assert [each.notification_id for each in pending.reads] == [made.id]


async def test_of_many_users_all_are_told_in_one_turn(bench: Bench, ground: Ground) -> None:
    """More than are read at once."""
    users = [f"user-{n}" for n in range(USERS_AT_ONCE + 1)]
    for user in users:
        said = Registration(APP, UserId(user), DeviceId("phone"), IOS, f"token-of-{user}")
        await bench.store.devices.upsert(said, bench.now, 0)
        made = notification(bench.now, user=user)
        await bench.routed(made, Sent("p"))
        await bench.store.feed.mark(replace(marking(made, Mark.READ, bench.now), is_told=True))
    await tell_reads(ground)
    lease = await bench.lease(2 * len(users), lane=Lane.SILENT)
    assert {item.notification.user_id for item in lease.items} == set(users)
