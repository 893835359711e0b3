"""Settlements: the decisions from an outcome, and how one changes a receipt."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec
from msgspec import Struct

from waypost.domain.breaker import Rest
from waypost.domain.delivery import Attempt, Delivery, FailureClass, Receipt, starts_before
from waypost.domain.notification import Guarantee
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.retry import Exhausted, RetryPolicy
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import SECOND_MS, Instant, later

ATTEMPTS_KEPT = 100
"""The most attempts that a receipt shows: the first and the latest; the journal reported all of them."""

LAST_CHANCE_MS: Final = 10 * SECOND_MS
"""Milliseconds before its end at which a delivery is tried once more although its provider wants a longer rest."""


class Sent(Struct, frozen=True, tag=True):
    """The provider took the message."""

    provider_id: str


class Again(Struct, frozen=True, tag=True):
    """Another attempt is due at *due_at*; *spends_attempt* is false where nothing was really tried (throttled)."""

    due_at: Instant
    spends_attempt: bool
    code: str
    why: str


class Expired(Struct, frozen=True, tag=True):
    """The delivery's time is over."""

    code: str | None = None
    """The code that the last attempt met, where there was one."""


class Forget(Struct, frozen=True, tag=True):
    """The token is dead: the delivery failed, and the registry evicts what was registered before *since*."""

    code: str
    since: Instant
    letter: bool


class Dead(Struct, frozen=True, tag=True):
    """The delivery failed for good; *letter* keeps it as a dead letter."""

    code: str
    why: str
    failure_class: FailureClass
    letter: bool


class Parked(Struct, frozen=True, tag=True):
    """The delivery waits for *condition* without spending an attempt; it expires with the notification."""

    condition: str
    until: Instant
    code: str | None = None


class Unsure(Struct, frozen=True, tag=True):
    """An at_most_once attempt got no answer: never sent again."""

    code: str


class Intent(Struct, frozen=True, tag=True):
    """An at_most_once attempt is about to be sent: recorded first, closed as unknown at *deadline* unless settled."""

    deadline: Instant


class Unstarted(Struct, frozen=True, tag=True):
    """The delivery was given back: nothing was done, no attempt is spent."""


class Suppressed(Struct, frozen=True, tag=True):
    """A rule decided not to send."""

    reason: str


class Cancelled(Struct, frozen=True, tag=True):
    """The delivery was withdrawn before it was sent."""

    why: str


Settlement = Sent | Again | Expired | Forget | Dead | Parked | Unsure | Intent | Unstarted | Suppressed | Cancelled


def decide(
    outcome: Outcome, delivery: Delivery, policy: RetryPolicy, now: Instant, jitter: float, rest: Rest | None = None
) -> Settlement:
    """Say what happens to *delivery* next. Pure: the same inputs give the same answer; *jitter* is chance, 0 to 1.

    The next attempt is due after the provider's hint and after our own delay, whichever is later: a short hint, given
    again and again, would use up all retries within seconds, while the time to live has hours left. A hint beyond the
    end of the notification leaves it one last attempt shortly before that. *rest* is given
    while a breaker is open: then it is not the delivery's fault that nothing was taken, and it spends no retry
    (requirements S3-103).
    """
    letter = policy.on_exhausted is Exhausted.DLQ
    rest_ms = 0 if rest is None else rest.wait_ms
    match outcome:
        case Taken(provider_id):
            return Sent(provider_id)
        case Gone(code, since):
            return Forget(code, now if since is None else since, letter)
        case Refused(code, why):
            return Dead(code, why, FailureClass.TERMINAL, letter)
        case CredentialRejected() | Unreachable() if rest is not None:
            return _rested(outcome, delivery, rest, now)
        case Unanswered(code) if delivery.guarantee is Guarantee.AT_MOST_ONCE:
            return Unsure(code)
        case Throttled():
            return _throttled(outcome, delivery, max(policy.delay_ms(delivery.throttles, jitter), rest_ms), now, rest)
        case CredentialRejected(code, why) | Unreachable(code, why) | Unanswered(code, why) if _out_of_retries(
            delivery, policy, now
        ):
            return Dead(code, why, FailureClass.RETRYABLE, letter)
        case CredentialRejected(code, why) | Unreachable(code, why):
            own = policy.delay_ms(delivery.retries_made, jitter)
            return again_or_expired(delivery, _due_at(delivery, now, own, _hint_ms(outcome)), code, why)
        case Unanswered(code, why, wait_ms):
            own = policy.delay_ms(delivery.retries_made, jitter, policy.unanswered_base_ms)
            return again_or_expired(delivery, _due_at(delivery, now, max(own, rest_ms), wait_ms), code, why)
        case _:
            assert_never(outcome)


def _due_at(delivery: Delivery, now: Instant, own_ms: int, hint_ms: int | None) -> Instant:
    """Return when to retry, after our delay and the provider's hint; a hint beyond the end means once before that."""
    due_at, own_at = later(now, max(own_ms, hint_ms or 0)), later(now, own_ms)
    last_chance = later(delivery.message.expires_at, -LAST_CHANCE_MS)
    if due_at >= delivery.message.expires_at and now < last_chance:
        return max(own_at, last_chance)
    return due_at


def _throttled(outcome: Throttled, delivery: Delivery, own_ms: int, now: Instant, rest: Rest | None) -> Settlement:
    """Try again without spending a retry; what ends before that waits under the condition, for it may end sooner."""
    if rest is not None and later(now, max(outcome.wait_ms or 0, own_ms)) >= delivery.message.expires_at:
        return parked_or_expired(delivery, rest.condition, now, delivery.attempt + 1, outcome.code)
    due_at = _due_at(delivery, now, own_ms, outcome.wait_ms)
    return again_or_expired(delivery, due_at, outcome.code, "throttled by the provider", spends_attempt=False)


def _hint_ms(outcome: CredentialRejected | Unreachable) -> int:
    """Return for how long the provider wants to be left alone, milliseconds; a refusal says nothing of that."""
    return outcome.wait_ms or 0 if isinstance(outcome, Unreachable) else 0


def _rested(outcome: CredentialRejected | Unreachable, delivery: Delivery, rest: Rest, now: Instant) -> Settlement:
    """Try again after the next probe; what ends before that waits under the condition, for it may end sooner."""
    due_at = later(now, max(rest.wait_ms, _hint_ms(outcome)))
    if due_at >= delivery.message.expires_at:
        return parked_or_expired(delivery, rest.condition, now, delivery.attempt + 1, outcome.code)
    return Again(due_at, False, outcome.code, outcome.why)


def again_or_expired(
    delivery: Delivery, due_at: Instant, code: str, why: str, *, spends_attempt: bool = True
) -> Settlement:
    """Plan another attempt at *due_at*, unless the notification is over by then."""
    if due_at >= delivery.message.expires_at:
        return Expired(code)
    return Again(due_at, spends_attempt, code, why)


def held_back(
    delivery: Delivery, wait_ms: int, code: str, policy: RetryPolicy | None, now: Instant, jitter: float
) -> Settlement:
    """Say what happens to *delivery*, of which a limit of ours lets nothing go on the wire for *wait_ms*.

    *policy* is given where that spends a retry; it may wait longer.
    """
    why = "over a limit; nothing was tried"
    if policy is None:
        return again_or_expired(delivery, later(now, wait_ms), code, why, spends_attempt=False)
    if _out_of_retries(delivery, policy, now):
        return Dead(code, why, FailureClass.RETRYABLE, policy.on_exhausted is Exhausted.DLQ)
    wait_ms = max(wait_ms, policy.delay_ms(delivery.retries_made, jitter))
    return again_or_expired(delivery, later(now, wait_ms), code, why)


def parked_or_expired(
    delivery: Delivery, condition: str, now: Instant, attempt: int, code: str | None = None
) -> Settlement:
    """Wait for *condition* with attempt number *attempt*, unless it is too late for that already."""
    until = starts_before(delivery.message, attempt)
    return Expired(code) if now >= until else Parked(condition, until, code)


def _out_of_retries(delivery: Delivery, policy: RetryPolicy, now: Instant) -> bool:
    too_old = policy.max_age_ms is not None and now >= later(delivery.message.created_at, policy.max_age_ms)
    return too_old or delivery.retries_made >= policy.max_retries


class Change(Struct, frozen=True):
    """A settlement of one target, as handed to the store."""

    n: int
    attempt: int
    """The attempt it answers: compared with the receipt's, so that the first outcome wins."""
    settlement: Settlement
    at: Instant
    made: Attempt | None = None
    """The attempt; None where nothing was tried (parked, expired, suppressed, an intent)."""
    is_use: bool = False
    """Whether the registry is to be told that the device was sent to."""


def opened(receipt: Receipt, due_at: Instant) -> Receipt:
    """Reopen a dead or final receipt as ``pending``, due at *due_at*: a replay does so to each target it takes."""
    return msgspec.structs.replace(
        receipt,
        status=DeliveryStatus.PENDING,
        due_at=due_at,
        retries=0,
        throttles=0,
        parked=None,
        dead=False,
        resolved_at=None,
    )


def apply(receipt: Receipt, change: Change) -> Receipt | None:
    """Apply *change* to a receipt; None refuses a stale one (compare-and-set by attempt: the first outcome wins).

    A second intent for the same attempt is stale too, and so is that it was put off before it was tried: whoever made
    the first may have sent already.
    """
    if not receipt.is_open or receipt.is_newer:
        return None
    if change.attempt != (receipt.attempt if receipt.is_intent else receipt.attempt + 1):
        return None
    if receipt.is_intent and change.made is None and isinstance(change.settlement, Intent | Parked | Again):
        return None
    if isinstance(change.settlement, Unstarted) and not receipt.is_intent:
        return receipt
    return msgspec.structs.replace(_with_attempt(receipt, change), **_fields(change, receipt))


def _with_attempt(receipt: Receipt, change: Change) -> Receipt:
    made = change.made
    if made is None:
        return receipt
    return msgspec.structs.replace(
        receipt,
        attempt=change.attempt,
        first_attempt_at=receipt.first_attempt_at or made.at,
        last_attempt_at=made.at,
        attempts=(*_kept(receipt.attempts), made),
        code=made.code or receipt.code,
    )


def _kept(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """Drop an attempt of the history where there is no room for one more: the second, so that the first stays."""
    return attempts if len(attempts) < ATTEMPTS_KEPT else (attempts[0], *attempts[2 - ATTEMPTS_KEPT :])


def _fields(change: Change, receipt: Receipt) -> dict[str, object]:
    at = change.at
    match change.settlement:
        case Sent(provider_id):
            return _closed(DeliveryStatus.SENT, at) | {
                "provider_id": provider_id,
                "sent_at": at,
                "failure_class": None,
                "reason": None,
            }
        case Again(due_at, spends_attempt, code, why):
            spent = {"retries": receipt.retries + 1} if spends_attempt else {"throttles": receipt.throttles + 1}
            return {
                "status": DeliveryStatus.PENDING,
                "due_at": due_at,
                "parked": None,
                "code": code,
                "reason": why,
                "failure_class": FailureClass.RETRYABLE,
            } | spent
        case Parked(condition, until, code):
            kept = {} if code is None else {"code": code}
            return {"status": DeliveryStatus.PENDING, "due_at": until, "parked": condition} | kept
        case Intent(deadline):
            return {
                "status": DeliveryStatus.UNKNOWN,
                "due_at": deadline,
                "parked": None,
                "attempt": change.attempt,
                "first_attempt_at": receipt.first_attempt_at or at,
                "last_attempt_at": at,
            }
        case Unstarted():
            return {"status": DeliveryStatus.PENDING, "due_at": at}
        case unsent:
            return _without_sending(unsent, at, receipt)


def _without_sending(
    settlement: Expired | Forget | Dead | Unsure | Suppressed | Cancelled, at: Instant, receipt: Receipt
) -> dict[str, object]:
    """Return the fields of a receipt that is closed though nothing is known to have been sent."""
    match settlement:
        case Expired(code):
            return _closed(DeliveryStatus.EXPIRED, at) | {"reason": "expired", "code": code or receipt.code}
        case Forget(code, _, letter):
            return _failed(at, code, "gone", FailureClass.TERMINAL, letter)
        case Dead(code, why, failure_class, letter):
            return _failed(at, code, why, failure_class, letter)
        case Unsure(code):
            return _closed(DeliveryStatus.UNKNOWN, at) | {"code": code, "reason": "unanswered"}
        case Suppressed(reason):
            return _closed(DeliveryStatus.SUPPRESSED, at) | {"reason": reason}
        case Cancelled(why):
            return _closed(DeliveryStatus.CANCELLED, at) | {"reason": why}
        case _:
            assert_never(settlement)


def _closed(status: DeliveryStatus, at: Instant) -> dict[str, object]:
    return {"status": status, "due_at": None, "parked": None, "resolved_at": at}


def _failed(at: Instant, code: str, why: str, failure_class: FailureClass, letter: bool) -> dict[str, object]:
    fields = {"code": code, "reason": why, "failure_class": failure_class, "dead": letter}
    return _closed(DeliveryStatus.FAILED, at) | fields
