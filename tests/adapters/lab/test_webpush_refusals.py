"""The push services refuse what RFC 8030, 8291 and 8292 forbid, each in its own words."""

import os
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.adapters.lab.senders import Senders, base64url, point

pytestmark = pytest.mark.asyncio

HEADERS: list[tuple[dict[str, Any], int, str]] = [
    ({"ttl": None}, 400, "ttl_missing"),
    ({"ttl": "-1"}, 400, "ttl_missing"),
    ({"ttl": "1.5"}, 400, "ttl_missing"),
    ({"urgency": "urgent"}, 400, "urgency_invalid"),
    ({"topic": "t" * 33}, 400, "topic_invalid"),
    ({"topic": "a.b"}, 400, "topic_invalid"),
    ({"content-encoding": "aesgcm"}, 400, "encoding_invalid"),
    ({"content-encoding": None}, 400, "encoding_invalid"),
    ({"authorization": None}, 401, "vapid_missing"),
    ({"authorization": "vapid t=a.b.c, k=x"}, 403, "vapid_key_invalid"),
    ({"authorization": "key=AAAA"}, 403, "vapid_legacy"),
    ({"authorization": "bearer x"}, 403, "vapid_invalid"),
]


@pytest.mark.parametrize(("headers", "status", "reason"), HEADERS)
async def test_header_refusals(senders: Senders, headers: dict, status: int, reason: str) -> None:
    answer = await senders.webpush(await senders.subscription(), headers)
    assert (answer.status_code, answer.text) == (status, reason)


CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"aud": "https://push.example.net"}, "vapid_audience"),
    ({"aud": "https://127.0.0.1/"}, "vapid_audience"),
    ({"exp": int(time.time()) - 1}, "vapid_expired"),
    ({"exp": int(time.time()) + 2 * 86400}, "vapid_expires_late"),
    ({"exp": None}, "vapid_invalid"),
    ({"sub": None}, "vapid_subject"),
    ({"sub": "ops@example.com"}, "vapid_subject"),
    ({"sub": "mailto:mailto:ops@example.com"}, "vapid_subject"),
    ({"sub": "mailto:ops@localhost"}, "vapid_subject"),
]


@pytest.mark.parametrize(("claims", "reason"), CLAIMS)
async def test_vapid_claims(senders: Senders, claims: dict, reason: str) -> None:
    answer = await senders.webpush(await senders.subscription(), {"authorization": senders.vapid(**claims)})
    assert (answer.status_code, answer.text) == (403, reason)


async def test_a_vapid_token_must_be_signed_by_the_key_beside_it(senders: Senders) -> None:
    token = senders.vapid().partition(",")[0]
    foreign = base64url(point(ec.generate_private_key(ec.SECP256R1())))
    answer = await senders.webpush(await senders.subscription(), {"authorization": f"{token}, k={foreign}"})
    assert answer.text == "vapid_invalid"


async def test_a_restricted_subscription_takes_its_own_sender_alone(senders: Senders) -> None:
    own = await senders.subscription(vapid_public_key=base64url(point(senders.vapid_key)))
    other = await senders.subscription(vapid_public_key=base64url(point(ec.generate_private_key(ec.SECP256R1()))))
    assert (await senders.webpush(own)).status_code == 201
    answer = await senders.webpush(other)
    assert (answer.status_code, answer.text) == (403, "vapid_key_mismatch")


async def test_what_the_browser_cannot_decrypt_is_refused(senders: Senders) -> None:
    subscription, other = await senders.subscription(), await senders.subscription()
    good = senders.encrypted(subscription, b"{}")
    bad = [
        senders.encrypted(other, b"{}"),
        good[:-1] + bytes([good[-1] ^ 1]),
        os.urandom(16) + good[16:],
        good[:16] + (17).to_bytes(4) + good[20:],
        good[:20] + b"\x40" + good[21:],
        good[:50],
    ]
    assert [(await senders.webpush(subscription, body=body)).text for body in bad] == ["undecryptable"] * len(bad)
    assert (await senders.webpush(subscription, body=good)).status_code == 201


async def test_the_one_time_key_must_not_be_the_vapid_key(senders: Senders) -> None:
    subscription = await senders.subscription()
    answer = await senders.webpush(subscription, body=senders.encrypted(subscription, b"{}", key=senders.vapid_key))
    assert (answer.status_code, answer.text) == (400, "key_reused")


async def test_4096_bytes_pass_and_one_more_is_too_large(senders: Senders) -> None:
    subscription = await senders.subscription()
    largest = senders.encrypted(subscription, b"x" * 3993)
    assert len(largest) == 4096
    assert (await senders.webpush(subscription, body=largest)).status_code == 201
    answer = await senders.webpush(subscription, body=largest + b"x")
    assert (answer.status_code, answer.text) == (413, "too_large")


async def test_an_unknown_subscription_is_404_and_a_dead_one_410(senders: Senders) -> None:
    subscription = await senders.subscription()
    await senders.admin("POST", f"/tokens/{subscription['token']}/kill")
    assert (await senders.webpush(subscription)).status_code == 410
    unknown = {**subscription, "endpoint": subscription["endpoint"] + "x"}
    assert (await senders.webpush(unknown)).status_code == 404


async def test_two_urgencies_are_refused(senders: Senders) -> None:
    subscription = await senders.subscription()
    pairs = [("ttl", "1"), ("urgency", "low"), ("urgency", "high"), ("authorization", senders.vapid())]
    answer = await senders.client.post(subscription["endpoint"], headers=pairs)
    assert (answer.status_code, answer.text) == (400, "urgency_invalid")


async def test_a_long_ttl_is_shortened_and_said_so(senders: Senders) -> None:
    answer = await senders.webpush(await senders.subscription(), {"ttl": "4000000000"})
    assert (answer.status_code, answer.headers["ttl"]) == (201, str(30 * 86400))


SERVICES: list[tuple[str, dict, int, dict | bytes | None]] = [
    ("mozilla", {"ttl": None}, 400, {"code": 400, "errno": 111}),
    ("mozilla", {"authorization": "vapid t=a, k=b"}, 401, {"code": 401, "errno": 109}),
    ("apple", {"ttl": "0"}, 400, {"reason": "BadTtl"}),
    ("apple", {"authorization": None}, 403, {"reason": "BadAuthorizationHeader"}),
    ("apple", {"topic": "a.b"}, 400, {"reason": "BadWebPushTopic"}),
    ("chrome", {"authorization": None}, 401, b"authorization header must be specified.\n"),
    ("windows", {"ttl": "0"}, 400, b""),
]


@pytest.mark.parametrize(("service", "headers", "status", "body"), SERVICES)
async def test_each_service_refuses_in_its_own_words(
    senders: Senders, service: str, headers: dict, status: int, body: Any
) -> None:
    subscription = await senders.subscription(service=service)
    assert (await senders.webpush(subscription)).status_code == 201
    answer = await senders.webpush(subscription, headers)
    assert answer.status_code == status
    if isinstance(body, bytes):
        assert answer.content == body
    else:
        assert body.items() <= answer.json().items()


async def test_windows_gives_the_reason_in_headers_alone(senders: Senders) -> None:
    answer = await senders.webpush(await senders.subscription(service="windows"), {"ttl": "0"})
    assert answer.headers["x-wns-error-description"] == "Ttl value conflicts with X-WNS-Cache-Policy"
