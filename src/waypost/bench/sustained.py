"""More than a machine can take, for a while: what is reached, what limits it, and whether all of it is right after."""

from __future__ import annotations

import time
from dataclasses import dataclass

from waypost.bench import shapes
from waypost.bench.contention import Contention
from waypost.bench.end_to_end import BATCH, burst
from waypost.bench.programs import Programs
from waypost.bench.registry import DEVICES_PER_USER
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, StoreBalance, running, until_quiet

GOAL_PER_S = 28_930
"""Deliveries a second: a hundred million notifications a day, at ten times the average."""
WORKERS = 2
CONNECTIONS = 64
DELIVERIES, ACCEPTED = "deliveries a second", "accepted a second"
LOST, TWICE = "lost", "sent twice"
SAID_AGAIN = "notifications that callers submitted again, and that were taken again"


@dataclass(frozen=True)
class Offer:
    """The load that is offered."""

    users: int
    seconds: float
    warm_up: int = 2_000
    per_s: float = GOAL_PER_S
    """Deliveries a second that it would come to."""


@dataclass(frozen=True)
class Balanced:
    """The differences between store and gateway, once all is over."""

    lost: int
    """Notifications that are gone or not final, and receipts of what the gateway never had."""
    twice: int
    """Requests that the gateway had again, or that no receipt speaks of."""
    said_again: int
    """Notifications beyond those that were meant: of a request that was answered 503 in doubt, and asked again."""


def run(programs: Programs, offer: Offer) -> list[Row]:
    """Offer it, count what the gateway has when the time is over, wait for the rest, and compare both accounts."""
    with running(programs, WORKERS, offer.users) as stack:
        burst(stack, 0, offer.warm_up, users=offer.users, mixed=True)
        before = stack.gateway.total("accepted", "dead")
        contention = Contention(stack)
        load = stack.load(
            rate=offer.per_s / DEVICES_PER_USER,
            seconds=offer.seconds,
            batch=BATCH,
            connections=CONNECTIONS,
            users=offer.users,
            first=offer.warm_up,
            **shapes.wishes(),
        )
        lasted_s = contention.watch(offer.seconds)
        delivered = stack.gateway.total("accepted", "dead") - before
        seen = load.result()
        limits = contention.limits(seen["cpu_s"] / seen["seconds"])
        ended_s = time.perf_counter()
        balanced = _balanced(stack, offer.warm_up + seen["submitted"])
        drained_s = time.perf_counter() - ended_s
        taken = seen["submitted"] / seen["seconds"]
        return [
            *_rates(offer, delivered / lasted_s, taken),
            row("sustained", LOST, balanced.lost, "", "0 wanted"),
            row("sustained", TWICE, balanced.twice, "", "0 wanted"),
            row("sustained", SAID_AGAIN, balanced.said_again, "", "without a key, after a 503 that left it in doubt"),
            row("sustained", "until the rest was delivered, after that", drained_s, "s"),
            row("sustained", "memory of the largest process", stack.largest_mib(), "MiB"),
            *limits.rows("sustained"),
        ]


def _rates(offer: Offer, delivered_per_s: float, taken_per_s: float) -> list[Row]:
    offered = offer.per_s / DEVICES_PER_USER
    for_s = f"for {offer.seconds:g} s"
    return [
        row("sustained", DELIVERIES, delivered_per_s, "1/s", f"{offer.per_s:,.0f} offered {for_s}",
            delivered_per_s / offer.per_s),
        row("sustained", ACCEPTED, taken_per_s, "1/s", f"{offered:,.0f} offered {for_s}", taken_per_s / offered),
    ]  # fmt: skip


def _balanced(stack: BenchStack, submitted: int) -> Balanced:
    """Wait until all is final, or until nothing is awaited any more, and count what is wrong."""
    wanted = shapes.distinct(submitted)
    try:
        ledger = until_quiet(stack, wanted)
    except TimeoutError:
        ledger = StoreBalance(stack)
    return balanced(stack, ledger, wanted)


def balanced(stack: BenchStack, ledger: StoreBalance, wanted: int) -> Balanced:
    """Compare the account of the store with that of the gateway, where *wanted* notifications are to be final."""
    counts = stack.gateway.counts()
    accepted, dead = stack.gateway.total("accepted"), stack.gateway.total("dead")
    sent, failed = ledger.receipts.get("sent", 0), ledger.receipts.get("failed", 0)
    marked = sum(counts[name]["accepted"] - counts[name]["deliveries"] for name in ("apns", "fcm"))
    missing = wanted - (ledger.accepted - ledger.open)
    said_again = max(ledger.accepted - wanted, 0)
    return Balanced(
        lost=max(missing, 0) + max(sent - accepted, 0) + max(failed - dead, 0),
        twice=max(0 if said_again else marked, accepted - sent, 0),
        said_again=said_again,
    )
