"""Callers and devices: they ask again until they are answered, under the same key, and change their minds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from tests.simulation.process import APP, Process
from waypost.domain.amendment import Confirm
from waypost.domain.bulk import JobId, JobOrder
from waypost.domain.bulk_submission import BulkMessage, BulkSubmission
from waypost.domain.channel_steps import SubmittedStep
from waypost.domain.content import Kind, Urgency
from waypost.domain.errors import ErrorCode, InvalidRequest, Unavailable, WaypostError
from waypost.domain.ids import CallerId, NotificationId
from waypost.domain.notification import Guarantee
from waypost.domain.status import DeliveryStatus
from waypost.domain.submission import Submission
from waypost.domain.time import SECOND_MS
from waypost.pipeline.confirm import confirm
from waypost.pipeline.intake import Caller
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")
CALLER: Final = Caller(APP, CallerId("shop"), frozenset())
PATIENCE_S: Final = 4.0
ORDERS: Final = ((), (JobOrder.PAUSE, JobOrder.RESUME), (JobOrder.PAUSE, JobOrder.CANCEL), (JobOrder.CANCEL,))
"""What may be ordered of a bulk job."""
USERS: Final = ("ann", "bob", "cid", "dee")
"""The last one has no device."""


async def asked(world: World, ask: Callable[[Process], Awaitable[T]]) -> T | None:
    """Ask a process, whichever it is, and wait a while; None where no answer came."""
    alive = world.alive()
    if not alive:
        await asyncio.sleep(0.5)
        return None
    process = world.chance.choice(alive)
    answer: asyncio.Future[T | None] = world.loop.create_future()

    async def serve() -> None:
        try:
            result = await ask(process)
        except Unavailable:
            result = None
        except Exception as error:  # noqa: BLE001 - no caller here asks what cannot be
            return world.fail(f"a call ended with {type(error).__name__}: {error}")
        if not answer.done():
            answer.set_result(result)

    world.loop.create_task(serve(), context=process.context)
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await answer
    except TimeoutError:
        return None


async def insisted(world: World, ask: Callable[[Process], Awaitable[T]]) -> T:
    """Ask until there is an answer."""
    while True:
        answer = await asked(world, ask)
        if answer is not None:
            return answer
        await asyncio.sleep(world.chance.random() * 2)


async def caller(world: World, number: int) -> None:
    """Submit a few batches, each until it is answered, and what comes to a caller's mind afterwards."""
    chance = world.chance
    after: list[asyncio.Task[None]] = []
    for turn in range(chance.randint(1, 3)):
        await asyncio.sleep(chance.random() * 4)
        batch = [_submission(world, f"{number}-{turn}-{n}") for n in range(chance.choice((1, 1, 2, 4)))]
        answers = await insisted(world, lambda process, batch=batch: process.intake.submit(CALLER, batch))  # type: ignore[misc]  # mypy infers no type for a lambda's default
        for submission, answer in zip(batch, answers, strict=True):
            told = _noted(world, submission, answer)
            if chance.random() < 0.25:
                after.append(asyncio.create_task(_withdraw(world, told)))
            if chance.random() < 0.2:
                after.append(asyncio.create_task(_say_again(world, submission)))
            if chance.random() < 0.2:
                after.append(asyncio.create_task(_replay(world, told)))
    for task in after:
        await task


def _noted(world: World, submission: Submission, answer: Acceptance | InvalidRequest) -> NotificationId:
    """Note what is promised under a key: one id, whoever answers and however often."""
    key = submission.idempotency_key
    assert key is not None, "every caller here has keys"
    match answer:
        case Accepted(told):
            world.answered.add(told)
        case Duplicate(told, record):
            world.answered |= {told} if record is None else {told, record}
        case _:
            world.fail(f"{key} was answered {answer}")
            raise AssertionError
    if world.keys.setdefault(key, told) != told:
        world.fail(f"{key} stands for two notifications")
    return told


def _submission(world: World, key: str) -> Submission:
    chance = world.chance
    steps: tuple[str | SubmittedStep, ...] = ()
    ttl = chance.choice((0, 4, 10, 20, 30))
    if chance.random() < 0.35 and ttl > 6:
        steps = (
            SubmittedStep("push", chance.choice(("sent", "delivered", "opened")), f"{chance.randint(1, 5)}s"),
            "sms",
        )
    elif chance.random() < 0.2:
        steps = ("push", "sms")
    scheduled = None
    if chance.random() < 0.2:
        at = world.clock.now() + chance.randint(500, 8_000)
        scheduled = datetime.fromtimestamp(at / SECOND_MS, tz=UTC)
    is_silent = chance.random() < 0.1
    says_the_same = chance.random() < 0.1
    return Submission(
        user_id=chance.choice(USERS),
        kind=Kind.SILENT if is_silent else Kind.VISIBLE,
        urgency=chance.choice((Urgency.CRITICAL, Urgency.NORMAL, Urgency.NORMAL, Urgency.LOW)),
        title=None if is_silent else "the same" if says_the_same else key,
        data={"key": key} if is_silent else {},
        collapse_key=chance.choice(("c1", "c2")) if chance.random() < 0.3 else None,
        ttl=ttl,
        scheduled_at=scheduled,
        idempotency_key=key,
        dedup_window=20 if says_the_same else 0,
        guarantee=chance.choice((Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE)),
        channels=steps,
    )


async def _withdraw(world: World, told: NotificationId) -> None:
    await asyncio.sleep(world.chance.random() * 6)
    await insisted(world, lambda process: process.intake.cancel(CALLER, told))


async def _say_again(world: World, submission: Submission) -> None:
    """Repeat a request, or use its key for another."""
    await asyncio.sleep(world.chance.random() * 8)
    if world.chance.random() < 0.5:
        (answer,) = await insisted(world, lambda process: process.intake.submit(CALLER, [submission]))
        _noted(world, submission, answer)
        return
    other = Submission(user_id="ann", title="another", idempotency_key=submission.idempotency_key)
    (answer,) = await insisted(world, lambda process: process.intake.submit(CALLER, [other]))
    if not isinstance(answer, Conflicting):
        world.fail(f"another body under {submission.idempotency_key} was answered {answer}")


async def _replay(world: World, told: NotificationId) -> None:
    await asyncio.sleep(4 + world.chance.random() * 14)
    await insisted(world, lambda process: process.intake.replay(CALLER, [told], 10))


async def bulk(world: World) -> None:
    """Send one message to many, perhaps stop half-way, and perhaps for good."""
    chance = world.chance
    await asyncio.sleep(chance.random() * 6)
    recipients = [*USERS, *(f"nobody-{n}" for n in range(chance.randint(0, 8)))]
    message = BulkMessage(title="to all", ttl=chance.choice((10, 30)))
    asked_for = BulkSubmission(message, tuple(recipients), rate=chance.choice((None, 2, 50)))
    made = await insisted(world, lambda process: _made(process, asked_for))
    for order in chance.choice(
        ((), (JobOrder.PAUSE, JobOrder.RESUME), (JobOrder.PAUSE, JobOrder.CANCEL), (JobOrder.CANCEL,))
    ):
        await asyncio.sleep(chance.random() * 4)
        await insisted(world, lambda process, order=order: _ordered(process, made, order))  # type: ignore[misc]  # as above


async def _made(process: Process, asked_for: BulkSubmission) -> JobId:
    """Make the job; one that was cancelled when its repeat comes says so."""
    try:
        return (await process.bulk.submit(APP, CALLER.name, asked_for, "all")).record.job.id
    except WaypostError as error:
        if error.code is not ErrorCode.WRONG_STATE:
            raise
        return JobId(b"")


async def _ordered(process: Process, job: JobId, order: JobOrder) -> bool:
    """Give an order; the job may have ended before it."""
    try:
        await process.bulk.order(APP, job, order)
    except WaypostError as error:
        if error.code not in (ErrorCode.WRONG_STATE, ErrorCode.NOT_FOUND):
            raise
    return True


async def device(world: World, told: NotificationId, n: int) -> None:
    """Report what became of a message on its device, perhaps twice."""
    chance = world.chance
    words = (DeliveryStatus.DELIVERED, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED, DeliveryStatus.FAILED)
    for _ in range(chance.choice((1, 1, 2))):
        await asyncio.sleep(chance.random() * 5)
        order = Confirm(APP, told, n, chance.choice(words), world.clock.now())
        await insisted(world, lambda process, order=order: confirm(process.work, world.clock, [order]))  # type: ignore[misc]  # as above
