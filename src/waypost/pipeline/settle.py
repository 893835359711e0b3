"""Settle: from a sender's report to what the store is told. Pure."""

from __future__ import annotations

from typing import assert_never

from waypost.domain.breaker import Rest
from waypost.domain.delivery import Attempt, Delivery
from waypost.domain.device import Device, is_news
from waypost.domain.fallback import Detour, detoured
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.domain.retry import ErrorClass, RetryRules, classify
from waypost.domain.settlement import Change, Sent, decide
from waypost.domain.time import Instant


def change_of(
    delivery: Delivery,
    outcome: Outcome,
    rules: RetryRules,
    now: Instant,
    jitter: float,
    attempted_at: Instant,
    rest: Rest | None = None,
    detour: Detour | None = None,
) -> Change:
    """Make the change of a target from its *outcome*; *attempted_at* is when it was handed to the sender.

    *rest* is what the breaker says that is open after it, *detour* whether another credential takes it now.
    """
    if isinstance(outcome, Taken):
        return sent(delivery, outcome, now, attempted_at)
    if isinstance(outcome, Gone) and outcome.since is None:
        outcome = Gone(outcome.code, attempted_at)  # who registers while the attempt is under way stays
    policy = rules.policy_for(
        delivery.retry_policy, delivery.message.urgency, classify(outcome) or ErrorClass.TRANSIENT
    )
    settlement = (
        decide(outcome, delivery, policy, now, jitter, rest)
        if detour is None
        else detoured(detour, delivery, policy, now)
    )
    return Change(delivery.n, delivery.attempt, settlement, now, _record(delivery, outcome, attempted_at))


def sent(delivery: Delivery, taken: Taken, now: Instant, attempted_at: Instant) -> Change:
    """Make the change of a target whose delivery was *taken*: most of all that are made."""
    address = delivery.address
    made = Attempt(attempted_at, "taken", "", taken.note, address.token_hash, delivery.credential.name)
    is_use = isinstance(address, Device) and is_news(address, now)
    return Change(delivery.n, delivery.attempt, Sent(taken.provider_id), now, made, is_use)


def _record(delivery: Delivery, outcome: Outcome, attempted_at: Instant) -> Attempt:
    status, code, message = _words(outcome)
    return Attempt(attempted_at, status, code, message, delivery.address.token_hash, delivery.credential.name)


def _words(outcome: Outcome) -> tuple[str, str, str]:
    match outcome:
        case Taken(note=note):
            return "taken", "", note
        case Gone(code):
            return "gone", code, ""
        case Refused(code, why):
            return "refused", code, why
        case CredentialRejected(code, why, reach):
            return "denied", code, f"{why} ({_REACHES[reach]})"
        case Throttled(code):
            return "throttled", code, ""
        case Unreachable(code, why):
            return "unreachable", code, why
        case Unanswered(code, why):
            return "unanswered", code, why
        case _:
            assert_never(outcome)


_REACHES = {
    Reach.DEVICE: "said of this device, as long as others are taken",
    Reach.SCOPE: "said of its topic or push service alone",
    Reach.CREDENTIAL: "said of the whole credential",
}
