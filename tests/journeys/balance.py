"""The balance: what was promised against what the service says became of it and what the lab saw."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.journeys.harness import DEADLINE_S, Json, Kill, Service, until
from tests.journeys.load import Entry, Ledger
from tests.journeys.processes import environment_of_a_service

PATIENCE_S = 5.0
"""No request is given up sooner; the providers' answers take 10 s at most, counted from before it arrived there."""
OPEN = frozenset({"scheduled", "pending", "processing"})


@dataclass
class Balance:
    """What a run came to."""

    statuses: Counter[str]
    duplicates: int
    """Pushes that reached a device once more; each is proven to follow a kill."""

    def row(self) -> dict[str, object]:
        """As columns of a table."""
        return {"accepted": self.statuses.total(), **self.statuses, "lost": 0, "twice": self.duplicates}


async def balance(
    service: Service, ledger: Ledger, *, kills: Sequence[Kill] = (), deadline_s: float = DEADLINE_S
) -> Balance:
    """Wait until everything accepted is final, then hold it against the lab; any difference is an AssertionError.

    A device may get a second copy only where one of *kills* lies between the two, and the outcome of the first was not
    on record by then. With at_most_once there is no second copy at all.
    """
    details = await final_stories(service, ledger, deadline_s)
    unlisted, unknown = ledger.entries.keys() - details.keys(), details.keys() - ledger.entries.keys()
    assert not unlisted, f"{len(unlisted)} were accepted and are not listed, such as {min(unlisted)}"
    assert not unknown, f"{len(unknown)} are listed and nobody was told so, such as {details[min(unknown)]}"
    arrived = await compare_with_lab(service, list(ledger.entries.values()), details)
    await compare_with_sheet(service, details, arrived)
    copies = await service.lab.copies()
    repeated = {id_: tokens for id_, tokens in copies.items() if any(count > 1 for count in tokens.values())}
    for id_ in repeated:
        await _explain_copies(service, id_, kills)
    duplicates = sum(count - 1 for tokens in repeated.values() for count in tokens.values())
    return Balance(Counter(detail["status"] for detail in details.values()), duplicates)


async def final_stories(service: Service, ledger: Ledger, deadline_s: float = DEADLINE_S) -> dict[str, Json]:
    """Every notification that the service lists, once none of the ledger's is open."""

    still_open: list[str] = []

    async def settled() -> dict[str, Json]:
        details = await listed(service)
        still_open[:] = [id_ for id_ in ledger.entries if details.get(id_, {"status": "pending"})["status"] in OPEN]
        return {} if still_open else details

    try:
        details: dict[str, Json] = await until(settled, "everything accepted is final", deadline_s)
    except TimeoutError:
        _, first = await service.ask("GET", f"/v1/notifications/{still_open[0]}")
        raise AssertionError(f"{len(still_open)} are open after {deadline_s:.0f} s, such as {first}") from None
    return details


async def listed(service: Service) -> dict[str, Json]:
    """All notifications by id, without the records of duplicates; each is listed once."""
    found: dict[str, Json] = {}
    cursor = ""
    while True:
        status, page = await service.ask("GET", f"/v1/notifications?limit=500{cursor}")
        assert status == 200, page
        for each in page["items"]:
            assert each["id"] not in found, f"{each['id']} is listed twice"
            found[each["id"]] = each
        if page["next"] is None:
            return {id_: each for id_, each in found.items() if each["status"] != "deduplicated"}
        cursor = f"&cursor={page['next']}"


async def compare_with_sheet(service: Service, details: dict[str, Json], arrived: int) -> None:
    """The service's own balance adds up, and says what callers were told and the lab saw."""
    status, sheet = await service.ask("GET", "/v1/balance")
    assert status == 200, sheet
    assert sheet["adds_up"], sheet
    notifications, deliveries = sheet["total"]["notifications"], sheet["total"]["deliveries"]
    assert notifications["accepted"] + notifications["recipients"] == len(details), sheet
    assert notifications["ended"] == Counter(detail["status"] for detail in details.values()), sheet
    assert deliveries["ended"].get("sent", 0) == arrived, sheet
    assert deliveries["targets"] == sum(deliveries["ended"].values()), sheet


async def recount(service: Service) -> None:
    """A recount of all rows by the command line finds what was counted, while the service runs."""
    command = [sys.executable, "-m", "waypost.cli", "balance", "--audit", "--config", str(service.config_path)]
    environment = environment_of_a_service(None)
    done = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


async def compare_with_lab(service: Service, entries: list[Entry], details: dict[str, Json]) -> int:
    """Every device saw what it was promised; at_most_once may have missed what the service calls unknown.

    Returns the number of devices that did.
    """
    expected = []
    for entry in entries:
        status = details[entry.id]["status"]
        allowed = {"sent", "partial", "unknown"} if entry.at_most_once else {"sent"}
        assert status in allowed, f"{entry.id} ended {status}"
        tokens = list(entry.tokens) if status == "sent" else await _sent_tokens(service, entry)
        expected.append({"notification_id": entry.id, "tokens": tokens})
    once = [entry.id for entry in entries if entry.at_most_once]
    verdict = await service.lab.ask("POST", "/verify", {"expected": expected, "at_most_once": once})
    unsure = {entry.id for entry in entries if details[entry.id]["status"] in ("partial", "unknown")}
    unexpected = [each for each in verdict["unexpected"] if each["notification_id"] not in unsure]
    assert not verdict["missing"], f"lost: {verdict['missing'][:5]}"
    assert not unexpected, f"sent without being accepted: {unexpected[:5]}"
    assert not verdict["forbidden_duplicates"], "a second copy of what may be sent at most once"
    assert not verdict["evicted"], "the lab remembers too little for this run"
    return sum(len(each["tokens"]) for each in expected)


async def _sent_tokens(service: Service, entry: Entry) -> list[str]:
    """The devices of a notification that it certainly reached."""
    status, detail = await service.ask("GET", f"/v1/notifications/{entry.id}")
    assert status == 200, detail
    receipts = detail["receipts"]
    assert {each["status"] for each in receipts} <= {"sent", "unknown"}, receipts
    by_platform = {"ios": 0, "android": 1, "web": 2}
    order = sorted((each["device_id"] for each in receipts), key=by_platform.__getitem__)
    token_of = dict(zip(order, entry.tokens, strict=True))
    return [token_of[each["device_id"]] for each in receipts if each["status"] == "sent"]


async def _explain_copies(service: Service, notification_id: str, kills: Sequence[Kill]) -> None:
    """Each second copy follows a kill, or an answer on record that took too long, as on a machine that is overloaded.

    The outcome on record is that of the last copy.
    """
    arrived: dict[str, list[float]] = {}
    for push in await service.lab.arrivals(notification_id):
        arrived.setdefault(push["token"], []).append(push["at"])
    status, detail = await service.ask("GET", f"/v1/notifications/{notification_id}")
    assert status == 200, detail
    unanswered = [
        datetime.fromisoformat(attempt["at"]).timestamp()
        for receipt in detail["receipts"]
        for attempt in receipt["attempts"]
        if attempt["status"] == "unanswered"
    ]
    for times in arrived.values():
        for first, second in itertools.pairwise(times):
            explained = any(first <= kill.after and kill.before <= second for kill in kills)
            explained |= second - first >= PATIENCE_S and any(first <= at <= second for at in unanswered)
            assert explained, f"{notification_id} was sent twice, and nobody died between {first} and {second}"
    last = max(max(times) for times in arrived.values() if len(times) > 1)
    settled = max(datetime.fromisoformat(each["resolved_at"]).timestamp() for each in detail["receipts"])
    of_the_dead = any(kill.before <= last <= kill.after for kill in kills)  # on its way when its sender died
    late = f"{notification_id} was sent again after its outcome was on record"
    assert settled >= last - 0.001 or of_the_dead, f"{late}: {arrived}, {detail['receipts']}"
