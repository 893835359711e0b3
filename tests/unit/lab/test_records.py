"""The record is bounded, counts copies by notification and token, and can say whether a run was right."""

from typing import Any

import pytest

from waypost.lab.exchange import ClientConnection, GatewayAnswer, Request, Verdict
from waypost.lab.records import Records
from waypost.lab.verification import Expectation, Expected, verify


def arrived(records: Records, *pushes: tuple[str, str], accepted: bool = True) -> None:
    connection = records.open_connection("apns", "h2", 0)
    for notification_id, token in pushes:
        request = Request(method="POST", path="/", headers={}, body=b"x", connection=connection)
        verdict = Verdict(
            answer=GatewayAnswer(200), accepted=accepted, reason="" if accepted else "Bad", token=token,
            notification_id=notification_id,
        )  # fmt: skip
        records.add(request, verdict, 200, 1.0)


def records(max_records: int = 100, max_bodies: int = 2) -> Records:
    return Records(max_records=max_records, max_bodies=max_bodies, journal=None)


def test_copies_are_counted_by_notification_and_token() -> None:
    kept = records()
    arrived(kept, ("n", "a"), ("n", "b"), ("m", "a"), ("n", "a"))
    arrived(kept, ("n", "a"), accepted=False)
    assert kept.copies == {"n": {"a": 2, "b": 1}, "m": {"a": 1}}
    assert (kept.counts["apns"].accepted, kept.counts["apns"].duplicates, kept.counts["apns"].refused) == (4, 1, 1)


def test_the_oldest_records_are_evicted_with_their_copies() -> None:
    kept = records(max_records=3)
    arrived(kept, *(("n", f"t{number}") for number in range(5)))
    assert [record.token for record in kept.since(-1)] == ["t2", "t3", "t4"]
    assert kept.copies == {"n": {"t2": 1, "t3": 1, "t4": 1}}
    assert kept.evicted == 2
    assert [record.seq for record in kept.since(3)] == [4]


def test_bytes_are_kept_of_the_latest_only() -> None:
    kept = records(max_bodies=2)
    arrived(kept, *(("n", f"t{number}") for number in range(5)))
    assert [kept.content(seq) is not None for seq in range(5)] == [False, False, False, True, True]


def test_reset_forgets_what_arrived_but_not_open_connections() -> None:
    kept = records()
    arrived(kept, ("n", "a"))
    kept.reset()
    assert (list(kept.since(-1)), kept.copies, kept.counts["apns"].accepted, len(kept.connections)) == ([], {}, 0, 1)


def test_many_connections_do_not_fill_the_memory() -> None:
    kept = records()
    for _ in range(10_050):
        connection: ClientConnection = kept.open_connection("fcm", "h2", 0)
        connection.closed_at = 1
    assert len(kept.connections) <= 10_000


CASES: list[tuple[list[tuple[str, str]], list[str] | None, dict[str, Any]]] = [
    ([("n", "a"), ("n", "b")], None, {"ok": True}),
    ([("n", "a")], None, {"ok": False, "missing": [{"notification_id": "n", "token": "b"}]}),
    ([("n", "a"), ("n", "b"), ("n", "c")], None, {"ok": False, "unexpected": [{"notification_id": "n", "token": "c"}]}),
    ([("n", "a"), ("n", "b"), ("x", "a")], None, {"ok": False, "unexpected": [{"notification_id": "x", "token": "a"}]}),
    ([("n", "a"), ("n", "b"), ("x", "a")], ["x"], {"ok": True}),
    ([("n", "a"), ("n", "a"), ("n", "b")], None, {"ok": False, "forbidden_duplicates": 1}),
    ([("n", "a"), ("n", "a"), ("n", "b")], [], {"ok": True, "forbidden_duplicates": 0}),
    ([("n", "a"), ("n", "b"), ("x", "a"), ("x", "a")], ["x"], {"ok": False, "forbidden_duplicates": 1}),
]


@pytest.mark.parametrize(("pushes", "at_most_once", "found"), CASES)
def test_a_run_is_compared_with_what_was_meant(
    pushes: list[tuple[str, str]], at_most_once: list[str] | None, found: dict
) -> None:
    kept = records()
    arrived(kept, *pushes)
    result = verify(Expectation([Expected("n", ["a", "b"])], at_most_once), kept)
    assert found.items() <= result.items()


def test_a_web_push_device_may_be_named_by_its_endpoint() -> None:
    kept = records()
    arrived(kept, ("n", "abc"))
    assert verify(Expectation([Expected("n", ["https://127.0.0.1:1/push/abc"])]), kept)["ok"]


def test_what_was_evicted_cannot_be_verified() -> None:
    kept = records(max_records=1)
    arrived(kept, ("m", "a"), ("n", "a"))
    assert verify(Expectation([Expected("n", ["a"])]), kept)["ok"] is False
