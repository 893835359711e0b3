"""Huawei's own: its codes, its access tokens, and what it is told of a notification."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from msgspec.structs import replace
from waypost.contract import SenderBench, sender_bench
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.delivery import Delivery
from waypost.domain.errors import ConfigurationError
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable

from waypost_huawei.lab import SECRET_FILE, HuaweiGateway
from waypost_huawei.payload import message_of

DENIED = "Huawei does not take the access token"
ANSWERS: list[tuple[dict[str, Any], Outcome]] = [
    ({"status": 200, "reason": "80100003"}, Refused("80100003", "the message is not built as Huawei wants it")),
    ({"status": 200, "reason": "80200001"}, CredentialRejected("80200001", DENIED)),
    ({"status": 200, "reason": "80200003"}, CredentialRejected("80200003", "the access token has expired")),
    ({"status": 200, "reason": "80300002"}, CredentialRejected("80300002", "the app may not send messages")),
    ({"status": 200, "reason": "80300007"}, Gone("80300007")),
    ({"status": 200, "reason": "80300010"}, Refused("80300010", "too many tokens")),
    ({"status": 401}, CredentialRejected("http_401", DENIED)),
    ({"status": 503, "retry_after": 9}, Throttled("http_503", 9_000, whole=True)),
    ({"status": 500}, Unanswered("http_500", "an answer that Huawei does not document, status 500")),
    ({"status": 200, "body": "<html>"}, Unanswered("http_200", "an answer that Huawei does not document, status 200")),
]
Steps = Callable[[SenderBench], Awaitable[None]]


class OnBench(Protocol):
    """A function that runs steps with a sender at a lab."""

    def __call__(self, steps: Steps, **settings: object) -> None: ...


@pytest.fixture
def on_bench(tmp_path: Path) -> OnBench:
    """Run steps with a sender at a lab; *settings* go over those of its account."""

    def run(steps: Steps, **settings: object) -> None:
        async def opened() -> None:
            async with sender_bench("huawei", tmp_path, settings) as bench:
                await steps(bench)

        asyncio.run(opened())

    return run


def gateway_of(bench: SenderBench) -> HuaweiGateway:
    """The counterpart itself."""
    found = bench.lab.further["huawei"]
    assert isinstance(found, HuaweiGateway)
    return found


def test_every_code_becomes_its_outcome(on_bench: OnBench) -> None:
    async def steps(bench: SenderBench) -> None:
        for answer, expected in ANSWERS:
            to = bench.make()
            await bench.script({"match": {"token": to.token}, "do": {"answer": answer}})
            assert await bench.outcome(bench.delivery(to=to)) == expected, answer

    on_bench(steps)


def test_of_a_partial_success_the_token_decides(on_bench: OnBench) -> None:
    async def steps(bench: SenderBench) -> None:
        to = bench.make()
        for illegal, kind in (([to.token], Gone), (["another"], Taken)):
            said = json.dumps({"code": "80100000", "msg": json.dumps({"illegal_tokens": illegal}), "requestId": "r"})
            await bench.script({"match": {"token": to.token}, "do": {"answer": {"status": 200, "body": said}}})
            assert isinstance(await bench.outcome(bench.delivery(to=to)), kind)

    on_bench(steps)


def test_an_expired_access_token_is_replaced_and_the_message_arrives(on_bench: OnBench) -> None:
    async def steps(bench: SenderBench) -> None:
        assert isinstance(await bench.outcome(), Taken)
        gateway_of(bench).expire_tokens()
        assert all(isinstance(got, Taken) for got in await bench.outcomes([bench.delivery() for _ in range(5)]))
        assert len(bench.accepted()) == 6

    on_bench(steps)


def test_a_wrong_secret_is_the_credentials_fault(on_bench: OnBench, tmp_path: Path) -> None:
    async def steps(bench: SenderBench) -> None:
        got = await bench.outcome()
        assert got == CredentialRejected("oauth_400", "Huawei does not take the app's id and secret")
        assert not bench.sender.health().ok

    wrong = tmp_path / "wrong"
    wrong.write_text("nonsense")
    on_bench(steps, app_secret_file=str(wrong))


def test_while_no_access_token_is_to_be_had_nothing_is_sent(on_bench: OnBench) -> None:
    async def steps(bench: SenderBench) -> None:
        await bench.script({"match": {"times": 1}, "do": {"answer": {"status": 503}}})
        assert await bench.outcome() == Unreachable("oauth_503", "no access token is to be had")
        assert isinstance(await bench.outcome(), Taken)

    on_bench(steps)


def test_a_secret_that_is_not_there_is_named_by_its_setting(on_bench: OnBench, tmp_path: Path) -> None:
    async def steps(bench: SenderBench) -> None:
        raise AssertionError(f"started without {SECRET_FILE}")

    with pytest.raises(ConfigurationError, match=r"apps\.demo\.huawei\.app_secret_file: cannot read it"):
        on_bench(steps, app_secret_file=str(tmp_path / "none"))


def test_what_is_told_of_a_notification(on_bench: OnBench) -> None:
    async def steps(bench: SenderBench) -> None:
        one = bench.delivery(Content(title="Title", body="Body", data={"order": 7}), ttl_ms=60_000)
        shown = told(one, urgency=Urgency.HIGH)
        assert shown["notification"] == {"title": "Title", "body": "Body"}
        assert json.loads(shown["data"])["order"] == 7
        assert shown["android"]["urgency"] == "HIGH"
        assert shown["android"]["ttl"] == "60s"
        silent = told(one, kind=Kind.SILENT)
        assert "notification" not in silent
        assert "notification" not in silent["android"]
        assert told(one, override={"android": {"collapse_key": 3}, "token": ["x"]})["android"]["collapse_key"] == 3
        assert "token" not in told(one, override={"token": ["x"]})

    on_bench(steps)


def told(one: Delivery, **fields: Any) -> Any:
    """Render what goes to the device of a delivery whose message has *fields*."""
    return message_of(replace(one.message, **fields), one.id, one.message.created_at)
