"""Every fault the lab knows: while it lasts nothing is stuck, and when it is over everything ends."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.hurry import HURRIED, PROBED_SOON
from tests.journeys.balance import OPEN, final_stories
from tests.journeys.harness import Json, Service, running, until
from tests.journeys.load import Audience, Entry, Ledger, Load
from tests.shows import shows
from tests.tables import AddRow

PLATFORMS = ("ios", "android", "web")
RETRIES = {"max_retries": 50, "delays_ms": [500]}
"""Slow enough that a short fault does not open a breaker, which would make every row wait for its probe."""


@dataclass(frozen=True, eq=False)
class Fault:
    """A row of the matrix."""

    name: str
    do: tuple[Json, ...]
    ends: frozenset[str] = frozenset({"sent"})
    """What a delivery may come to that is sent at least once."""
    takes: bool = False
    """The provider takes the message and the answer is lost: a copy is the price of at_least_once."""
    where: str | None = None
    revokes: bool = False
    """The access tokens are revoked first, so that new ones must be fetched."""


_HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
_FAILED = frozenset({"failed"})

ANSWERS = (
    Fault("latency 1.5 s", ({"latency_ms": 1500},)),
    Fault("500", ({"answer": {"status": 500, "reason": "InternalServerError"}},)),
    Fault(
        "500 after acceptance",
        ({"answer": {"status": 500, "reason": "InternalServerError", "accept": True}},),
        takes=True,
    ),
    Fault("503", ({"answer": {"status": 503, "reason": "ServiceUnavailable"}},)),
    Fault("503, Retry-After 1 s", ({"answer": {"status": 503, "reason": "ServiceUnavailable", "retry_after": 1}},)),
    Fault(
        "502 in HTML",
        ({"answer": {"status": 502, "body": _HTML, "retry_after": 1, "headers": {"content-type": "text/html"}}},),
    ),
    Fault("token death", ({"gone": {}},), ends=_FAILED),
    Fault("bad token", ({"answer": {"status": 400, "reason": "BadDeviceToken"}},), ends=_FAILED, where="apns"),
    Fault("RST refused", ({"rst": {"code": 7}},)),
    Fault("RST internal", ({"rst": {"code": 2}},)),
    Fault("RST after acceptance", ({"rst": {"code": 2, "accept": True}},), takes=True),
)
THROTTLES = (
    Fault("429, Retry-After 1 s", ({"answer": {"status": 429, "reason": "TooManyRequests", "retry_after": 1}},)),
    Fault(
        "429, Retry-After a date", ({"answer": {"status": 429, "reason": "TooManyRequests", "retry_after_date_s": 2}},)
    ),
    Fault("one a second, a queue of one", ({"pace": {"per_s": 1, "queue": 1}},)),
)
HOLES = (
    Fault("black hole", ({"black_hole": {}},)),
    Fault("black hole after acceptance", ({"black_hole": {"accept": True}},), takes=True),
)
CONNECTIONS = (
    Fault("GOAWAY, all processed", ({"goaway": {"last_stream": "all"}},)),
    Fault("GOAWAY, half processed", ({"goaway": {"last_stream": "half", "hold_ms": 100}},)),
    Fault("GOAWAY, graceful", ({"goaway": {"graceful": True, "hold_ms": 100}},)),
    Fault("connection drop", ({"drop": True},)),
    Fault("drop after acceptance", ({"accept_then_drop": True},), takes=True),
    Fault("refused connections", ({"drop": True}, {"refuse_connections": True})),
    Fault("TLS failure", ({"drop": True}, {"tls_fail": True})),
    Fault("slow reader", ({"slow_reader": {"pause_ms": 1000}},)),
    Fault("one stream at a time", ({"settings": {"max_concurrent_streams": 1}},)),
    Fault("small windows", ({"settings": {"initial_window_size": 100, "max_frame_size": 16384}},)),
    Fault("OAuth 503", ({"answer": {"status": 503, "reason": "backend"}},), where="oauth", revokes=True),
    Fault(
        "OAuth invalid_grant", ({"answer": {"status": 400, "reason": "invalid_grant"}},), where="oauth", revokes=True
    ),
    Fault("topic refused", ({"answer": {"status": 400, "reason": "TopicDisallowed"}},), where="apns"),
    Fault("403 without a word", ({"answer": {"status": 403, "body": " "}},), where="webpush"),
    Fault("key refused", ({"answer": {"status": 403, "reason": "InvalidProviderToken"}},), where="apns"),
)
SLOW = (
    Fault("GOAWAY, none processed", ({"goaway": {"last_stream": "none"}},)),
    Fault("silent streams, PING answered", ({"black_hole": {"scope": "streams"}},)),
    Fault("silent connection", ({"black_hole": {"scope": "connection"}},)),
)
"""What takes longest, and what the client sees and does then its own tests show: test_hostile_connections and
test_hostile_server."""
PHASES = (ANSWERS[:5], *((each,) for each in THROTTLES), ANSWERS[5:], HOLES, *((each,) for each in CONNECTIONS))
"""Faults of single requests share a phase, each with users of its own; those that stop other requests, too, are alone:
what a connection does, and 429, after which a push service is given the pause that it asked for."""


@shows("S1-16")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "phases",
    [
        pytest.param(PHASES, id="most"),
        pytest.param(tuple((each,) for each in SLOW), id="slow", marks=pytest.mark.long),
    ],
)
@pytest.mark.asyncio
async def test_no_fault_gets_anything_stuck_or_lost(
    phases: tuple[tuple[Fault, ...], ...], tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """During a fault every delivery is final, due or parked; after it all of them end as the row says."""
    async with running(
        tmp_path, sitecustomize=HURRIED + PROBED_SOON, workers=1, app={"retry": {"default": RETRIES}}
    ) as service:
        for phase in phases:
            await _run_phase(service, phase, rng, table)


async def _run_phase(service: Service, phase: tuple[Fault, ...], rng: random.Random, table: AddRow) -> None:
    loads = {fault: await _audience_of(service, fault, rng) for fault in phase}
    rules = [rule for fault, load in loads.items() for rule in _rules(fault, load, alone=len(phase) == 1)]
    if any(fault.revokes for fault in phase):
        await service.lab.ask("POST", "/oauth/revoke")
    await service.lab.script(*rules)
    for load in loads.values():
        await _submit(load)
    whole = Ledger({id_: entry for load in loads.values() for id_, entry in load.ledger.entries.items()})
    reasons = {fault: Counter[str]() for fault in phase}
    for fault, load in loads.items():
        reasons[fault] = await _explained(service, load.ledger, fault)
    met = await service.lab.met()
    await service.lab.heal()
    began_s = time.monotonic()
    await final_stories(service, whole)
    healed_s = time.monotonic() - began_s
    for fault, load in loads.items():
        ends, duplicates = await _judge(service, fault, load.ledger)
        of_fault = [n for n, rule in zip(met, rules, strict=True) if rule["do"] in fault.do]
        table(
            "fault matrix",
            fault=fault.name,
            at=fault.where or "all",
            met=sum(of_fault),
            meanwhile=_words(reasons[fault]),
            afterwards=_words(ends),
            healed_s=f"{healed_s:.1f}",
            duplicates=duplicates,
            lost=0,
        )


async def _audience_of(service: Service, fault: Fault, rng: random.Random) -> Load:
    audience = Audience(service)
    await audience.register(2, (PLATFORMS,), prefix=fault.name.replace(" ", "-"))
    return Load(service, audience, rng)


async def _submit(load: Load) -> None:
    """Each user is told once at least, the first one also once at most."""
    for n, user in enumerate(load.users):
        plain = {"scheduled_at": None, "kind": "visible", "title": "News", "urgency": "normal"}
        await load.submit(load.compose(**plain, user_id=user, guarantee="at_least_once"))
        if n == 0:
            await load.submit(load.compose(**plain, user_id=user, guarantee="at_most_once"))


def _rules(fault: Fault, load: Load, *, alone: bool) -> list[Json]:
    where = {} if fault.where is None else {"where": fault.where}
    if alone:
        return [{"do": do, **where} for do in fault.do]
    tokens = [token for user in load.users for token in load.tokens_of(user)]
    return [{"do": do, **where, "match": {"token": _lab_name(token)}} for do in fault.do for token in tokens]


async def _explained(service: Service, ledger: Ledger, fault: Fault) -> Counter[str]:
    """Wait until each delivery was seen final, with a due time or with the condition it waits for.

    Where the fault ends deliveries, until all are final: one that only waits would be sent once it is over.
    """
    seen: dict[tuple[str, str], str] = {}

    async def all_seen() -> bool:
        for entry in ledger.entries.values():
            for receipt in (await _detail(service, entry))["receipts"]:
                if reason := _reason(receipt, fault):
                    seen.setdefault((entry.id, receipt["device_id"]), reason)
        return len(seen) == len(ledger.entries) * len(PLATFORMS)

    await until(all_seen, f"each delivery under '{fault.name}' is final, due or parked")
    return Counter(seen.values())


def _reason(receipt: Json, fault: Fault) -> str | None:
    status = str(receipt["status"])
    if "sent" not in fault.ends:
        return status if status in fault.ends | {"sent"} else None
    if status != "pending":
        return status
    if receipt["parked"]:
        return "parked"
    return "due" if receipt["next_retry_at"] else None


async def _judge(service: Service, fault: Fault, ledger: Ledger) -> tuple[Counter[str], int]:
    """Hold what became of every delivery against the row and the lab."""
    ends: Counter[str] = Counter()
    duplicates = 0
    copies = await service.lab.copies()
    for entry in ledger.entries.values():
        detail = await _detail(service, entry)
        assert detail["notification"]["status"] not in OPEN
        arrived = copies.get(entry.id, {})
        for receipt in detail["receipts"]:
            status = receipt["status"]
            count = arrived.get(_lab_name(entry.tokens[PLATFORMS.index(receipt["device_id"])]), 0)
            what = f"{fault.name}: {receipt['device_id']} of {entry.id}, {status}, {count} copies"
            hit = fault.where in (None, {"ios": "apns", "android": "fcm"}.get(receipt["device_id"], "webpush"))
            allowed = (fault.ends if hit else {"sent"}) | ({"unknown"} if entry.at_most_once else set())
            assert status in allowed, what
            assert status != "sent" or count >= 1, f"lost: {what}"
            assert count <= 1 or (fault.takes and not entry.at_most_once), f"repeated: {what}"
            ends[status] += 1
            duplicates += max(0, count - 1)
        if fault.name == "token death":
            await until(partial(_has_no_device, service, entry), "the dead tokens are evicted")
    return ends, duplicates


async def _has_no_device(service: Service, entry: Entry) -> bool:
    status, answer = await service.ask("GET", f"/v1/devices/{entry.body['user_id']}")
    assert status == 200, answer
    return not answer["items"]


async def _detail(service: Service, entry: Entry) -> Json:
    status, detail = await service.ask("GET", f"/v1/notifications/{entry.id}")
    assert status == 200, detail
    return detail


def _lab_name(token: str) -> str:
    """What the lab calls a device: a subscription goes by the last part of its endpoint."""
    return token.rpartition("/")[2] if token.startswith("https:") else token


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {word}" for word, n in counts.most_common())
