"""The judgement whether what arrived is what a case asks for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from waypost.lab.check.cases import Case
from waypost.lab.records import RequestRecord

Verdict = Literal["passed", "failed", "not exercised"]
_CLOCK_TOLERANCE_S = 0.1


class Result(msgspec.Struct, frozen=True):
    """The result of a sender in one case at one gateway."""

    case: str
    gateway: str
    verdict: Verdict
    why: str = ""


class SeenRequests(msgspec.Struct, frozen=True):
    """The requests that a gateway saw in one case, by token in order of arrival (unanswered ones that were not
    taken leave none), breaches of protocol, and how often its faults acted.
    """

    tokens: Sequence[str]
    """The case's targets there; the fault is for the first."""
    requests: Mapping[str, Sequence[RequestRecord]]
    violations: Mapping[str, int]
    faults: int
    acted: int
    trap: str = ""
    """A token nothing may be sent to."""
    message_ids: Sequence[str] = ()
    """The Message-IDs of all that was sent to the first target."""

    def accepted(self, token: str) -> int:
        """Count the copies that a target took."""
        return sum(record.accepted for record in self.requests.get(token, ()))


def complete(case: Case, seen: SeenRequests, rounds: int) -> bool:
    """Tell whether all has come that must have after so many *rounds*; then only too much can still be wrong."""
    first, *others = seen.tokens
    if any(seen.accepted(token) < rounds for token in others):
        return False
    if case.want.accepted and rounds == case.rounds:
        return seen.accepted(first) >= case.want.accepted
    return bool(seen.requests.get(first))


def judge(case: Case, gateway: str, seen: SeenRequests) -> Result:
    """Decide one case at one gateway."""
    if not any(seen.requests.values()) and not seen.acted:
        return Result(case.name, gateway, "not exercised", "nothing arrived")
    if seen.faults and not seen.acted:
        return Result(case.name, gateway, "not exercised", "the fault was never met")
    why = _too_few(case, seen) or _too_much(case, seen)
    return Result(case.name, gateway, "failed" if why else "passed", why)


def _too_few(case: Case, seen: SeenRequests) -> str:
    first, *others = seen.tokens
    lacking = sum(seen.accepted(token) < case.rounds for token in others)
    if case.want.accepted and seen.accepted(first) < case.want.accepted:
        lacking += 1
    if not lacking:
        return ""
    reasons = Counter(record.reason for records in seen.requests.values() for record in records if record.reason)
    refused = f"; refused: {', '.join(f'{name} ({count})' for name, count in reasons.items())}" if reasons else ""
    return f"{lacking} of {len(seen.tokens)} did not arrive{refused}"


def _too_much(case: Case, seen: SeenRequests) -> str:
    first, *others = seen.tokens
    want, requests = case.want, seen.requests.get(first, ())
    if want.accepted is not None and seen.accepted(first) > want.accepted:
        return f"{seen.accepted(first)} copies were taken, not {want.accepted}"
    if any(seen.accepted(token) > case.rounds for token in others):
        return "a message arrived more than once"
    if want.max_requests is not None and len(requests) > want.max_requests:
        return f"{len(requests)} requests, at most {want.max_requests} allowed"
    if want.pause_s is not None and len(requests) > 1:
        pause_s = requests[1].at - requests[0].at
        if pause_s < want.pause_s - _CLOCK_TOLERANCE_S:
            return f"tried again after {pause_s:.1f} s, not {want.pause_s:g}"
    if not seen.faults and not case.special and any(r.reason for records in seen.requests.values() for r in records):
        return "refused: " + ", ".join({r.reason for records in seen.requests.values() for r in records if r.reason})
    if want.one_message_id and len(set(seen.message_ids)) > 1:
        return "the repeated message has another Message-ID, so that a reader sees two"
    if seen.trap and seen.requests.get(seen.trap):
        return "the redirect was followed"
    return ", ".join(f"{name} ({count})" for name, count in seen.violations.items())
