"""Congestion control: how many deliveries a provider may have at once, from how long its answers take. Pure.

A provider that is given more than it can work off queues it, and what waits there longer than we wait for it is sent
again, which makes the queue longer still. So the number in flight follows the answer time, as a TCP sender's window
does: it doubles per round trip while answers are quick (slow start, RFC 5681), then grows slowly; it falls in
proportion to the excess where even the quickest answer of a round took too long (gradient rule, as in Netflix'
concurrency-limits and Envoy's adaptive concurrency filter; the minimum of a round rather than its mean tells a standing
queue from a burst, RFC 8289, section 3), and by a fixed part on time-outs, 429 and 503 (RFC 9438, section 4.6).

How long is too long depends on the base delay, the time of an answer that did not wait in a queue (RFC 6817,
section 2.4.2): the minimum of what was seen. It is raised only while next to nothing is in flight, so that no queue of
our own is taken for distance; other processes' queue may be, and therefore what it allows stays far below the deadline.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

_UNUSED_FOR_S = 10.0
_QUEUED = 0.6
"""The part of the time that an answer may take from which on a queue stands at the provider."""
_LEAST_FOR_S = 10.0
"""Seconds for which answers must be slow with the least in flight before distance is believed to be the cause."""


class CongestionRules(Struct, frozen=True):
    """Bounds and constants of one limit."""

    most: int
    """The ceiling: more deliveries than this the sender cannot usefully hold."""
    late_after_s: float = 10.0
    """An answer is late after this time."""
    start: int = 100
    """The limit before anything is known of the provider, and again after a pause."""
    least: int = 16
    """The limit never falls below this."""
    fall: float = 0.7
    """What is left of the limit after a time-out, a 429 of the whole account or a 503."""

    @property
    def quick_s(self) -> float:
        """An answer that takes no longer says nothing of a queue, whatever the base delay is.

        It is a quarter of a second at least: so long may a process that is busy itself take to read it.
        """
        return max(self.late_after_s / 20, 0.25)

    def allowed_s(self, base_s: float) -> float:
        """Return the longest answer time that is no sign of a queue: twice the base delay, within bounds."""
        return max(self.quick_s, min(2 * base_s, self.late_after_s / 10), 1.1 * base_s)


class Observed(Struct):
    """Measurements of a provider's answers during one round; mutable, since each answer is counted."""

    answers: int = 0
    quickest_s: float = math.inf
    overloads: int = 0
    """Time-outs, refusals for too many requests, failures of the provider."""
    stalled_s: float = 0.0
    """Seconds in which this process itself did not run: that much of an answer time is not the provider's."""
    is_limited: bool = False
    """Whether the limit held something up, or was about to."""
    most_used: float = 0.0
    """The highest number in flight, in terms of the limit."""


class Flow(Struct, frozen=True):
    """The limit of one provider, or of one part of it, and its measurements; times are of a monotonic clock."""

    rules: CongestionRules
    limit: float
    base_s: float
    """The quickest answer known; until one is known, the longest that is believed without a look at the least load."""
    is_starting: bool = True
    """Whether it doubles per round trip: nothing is known that speaks against it."""
    is_queued: bool = False
    """Whether answers take about as long as they may."""
    settled_at_s: float = 0.0
    """Answers before this time are to requests that were sent under an earlier limit."""
    least_since_s: float = math.inf
    """The time since when answers have been slow although the least is in flight."""
    used_at_s: float = 0.0
    """The time when the limit was last needed."""
    most_used: float = 0.0
    """The highest number in flight since then."""


def fresh(rules: CongestionRules) -> Flow:
    """Return the flow of a provider of which nothing is known."""
    return Flow(rules, float(min(rules.start, rules.most)), rules.quick_s)


def adjusted(flow: Flow, seen: Observed, now_s: float) -> Flow:
    """Return the flow after a round in which *seen* was seen. A round should last a round trip at least."""
    if now_s < flow.settled_at_s:
        return flow
    if seen.overloads:
        return fallen(flow, now_s)
    if not seen.answers:
        return flow if seen.is_limited else _rested(flow, seen, now_s)
    took_s = max(0.0, seen.quickest_s - seen.stalled_s)
    if seen.stalled_s:  # how much of that was in the quickest answer time is not known: nothing is learned of the base
        took_s = max(took_s, flow.base_s)
    flow = replace(flow, base_s=took_s) if took_s < flow.base_s else flow
    allowed_s = flow.rules.allowed_s(flow.base_s)
    flow = replace(flow, is_queued=took_s > _QUEUED * allowed_s)
    if took_s > allowed_s:
        return _shortened(flow, allowed_s, took_s, seen, now_s)
    flow = replace(flow, least_since_s=math.inf) if flow.least_since_s < math.inf else flow
    if not seen.is_limited:
        return _rested(flow, seen, now_s)
    return _grown(flow, seen, (took_s - flow.base_s) / (allowed_s - flow.base_s), now_s)


def fallen(flow: Flow, now_s: float) -> Flow:
    """Return the flow after a sign of overload: smaller by a fixed part, once in a round trip."""
    if now_s < flow.settled_at_s:
        return flow
    settles_s = now_s + flow.rules.allowed_s(flow.base_s)
    return _limited(replace(flow, is_starting=False, settled_at_s=settles_s), flow.limit * flow.rules.fall)


def _shortened(flow: Flow, allowed_s: float, took_s: float, seen: Observed, now_s: float) -> Flow:
    """Keep such a part of what is in flight that answers take *allowed_s* once the queue that was seen is gone.

    With the least in flight there is none of our own: where *took_s* stays, it is the provider's distance.
    """
    rules = flow.rules
    if flow.limit <= rules.least:
        since_s = min(flow.least_since_s, now_s)
        if now_s - since_s < _LEAST_FOR_S:
            return replace(flow, least_since_s=since_s)
        return replace(flow, base_s=min(took_s, rules.late_after_s / 2), is_starting=True, least_since_s=math.inf)
    used = min(flow.limit, seen.most_used) if seen.most_used else flow.limit
    settled = replace(flow, is_starting=False, settled_at_s=now_s + took_s)
    return _limited(settled, used * max(allowed_s / took_s, 0.5))


def _grown(flow: Flow, seen: Observed, share: float, now_s: float) -> Flow:
    """Raise a limit that was needed while answers were quick; *share* of the queue that may stand was seen."""
    used = replace(flow, used_at_s=now_s, most_used=0.0)
    if flow.is_starting and share < 0.5:
        return _limited(used, flow.limit + min(seen.answers, flow.limit))
    return _limited(replace(used, is_starting=False), flow.limit + max(1.0, math.sqrt(flow.limit) * (1 - share)))


def _rested(flow: Flow, seen: Observed, now_s: float) -> Flow:
    """Forget a limit that was not needed for a while: it says nothing any more of the provider (RFC 7661)."""
    most_used = max(flow.most_used, seen.most_used)
    if now_s - flow.used_at_s < _UNUSED_FOR_S:
        return replace(flow, most_used=most_used)
    least = min(flow.limit, max(flow.rules.start, 2 * most_used))
    return _limited(replace(flow, is_starting=True, is_queued=False, used_at_s=now_s, most_used=0.0), least)


def _limited(flow: Flow, limit: float) -> Flow:
    rules = flow.rules
    return replace(flow, limit=min(float(rules.most), max(float(min(rules.least, rules.most)), limit)))
