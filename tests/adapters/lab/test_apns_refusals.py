"""APNs refuses what Apple refuses, with Apple's status and reason (Apple: "Handling notification responses")."""

import base64
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.adapters.lab.senders import NID, TOKEN, Senders, provider_token
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio

SILENT = {"apns-push-type": "background", "apns-priority": "5"}
WIDGETS = {"apns-push-type": "widgets", "apns-topic": "com.example.demo.push-type.widgets"}
HEADERS = [
    ({"authorization": None}, 403, "MissingProviderToken"),
    ({"authorization": "basic abc"}, 403, "MissingProviderToken"),
    ({"authorization": "bearer abc"}, 403, "InvalidProviderToken"),
    ({"apns-topic": None}, 400, "MissingTopic"),
    ({"apns-topic": "com example"}, 400, "BadTopic"),
    ({"apns-topic": "com.example.other"}, 400, "TopicDisallowed"),
    ({"apns-push-type": None}, 400, "InvalidPushType"),
    ({"apns-push-type": "banner"}, 400, "InvalidPushType"),
    ({"apns-push-type": "voip"}, 400, "InvalidPushType"),
    ({"apns-topic": "com.example.demo.voip"}, 400, "InvalidPushType"),
    ({"apns-priority": "7"}, 400, "BadPriority"),
    ({"apns-push-type": "background", "apns-priority": "10"}, 400, "BadPriority"),
    ({"apns-push-type": "background"}, 400, "BadPriority"),
    ({"apns-id": NID.upper()}, 400, "BadMessageId"),
    ({"apns-id": "1"}, 400, "BadMessageId"),
    ({"apns-collapse-id": "c" * 65}, 400, "BadCollapseId"),
    ({"apns-expiration": "soon"}, 400, "BadExpirationDate"),
    ({"apns-expiration": "-1"}, 400, "BadExpirationDate"),
    ({"apns-expiration": str(int(time.time() * 1000))}, 400, "BadExpirationDate"),
]


@pytest.mark.parametrize(("headers", "status", "reason"), HEADERS)
async def test_header_refusals(senders: Senders, headers: dict, status: int, reason: str) -> None:
    answer = await senders.apns(headers)
    assert (answer.status_code, answer.json()) == (status, {"reason": reason})
    assert answer.headers["content-type"] == "application/json"
    counts = await senders.admin("GET", "/counts")
    assert (counts["apns"]["accepted"], counts["apns"]["reasons"]) == (0, {reason: 1})


PAYLOADS: list[tuple[Any, dict, int, str]] = [
    ({"aps": {"alert": "x" * 4096}}, {}, 413, "PayloadTooLarge"),
    ({"waypost_id": NID}, {}, 400, "BadRequestPayload"),
    ({"aps": {"alert": 1}}, {}, 400, "BadRequestPayload"),
    ({"aps": {"alert": "a", "badge": "1"}}, {}, 400, "BadRequestPayload"),
    ({"aps": {"alert": "a", "content-available": True}}, {}, 400, "BadRequestPayload"),
    ({"aps": {"alert": "a", "interruption-level": "loud"}}, {}, 400, "BadRequestPayload"),
    ({"aps": {"alert": "a", "relevance-score": 2}}, {}, 400, "BadRequestPayload"),
    ({"aps": {"alert": {"loc-args": ["a"]}}}, {}, 400, "BadRequestPayload"),
    ({"aps": {"content-available": 1}}, {}, 400, "InvalidPushType"),
    ({"aps": {"content-available": 1, "alert": "a"}}, SILENT, 400, "InvalidPushType"),
    ({"aps": {}}, SILENT, 400, "InvalidPushType"),
    ({"aps": {}}, WIDGETS, 400, "InvalidPushType"),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "headers", "status", "reason"), PAYLOADS)
async def test_payload_refusals(senders: Senders, payload: Any, headers: dict, status: int, reason: str) -> None:
    answer = await senders.apns(headers, payload)
    assert (answer.status_code, answer.json()) == (status, {"reason": reason})


@pytest.mark.parametrize(
    ("content", "status", "reason"), [(b"", 400, "PayloadEmpty"), (b"{", 400, "BadRequestPayload")]
)
async def test_body_refusals(senders: Senders, content: bytes, status: int, reason: str) -> None:
    answer = await senders.apns(content=content)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)


async def test_a_voip_payload_may_have_5120_bytes(senders: Senders) -> None:
    headers = {"apns-push-type": "voip", "apns-topic": "com.example.demo.voip"}
    empty = len('{"aps": {}, "k": ""}')
    assert (await senders.apns(headers, {"aps": {}, "k": "x" * (5120 - empty)})).status_code == 200
    assert (await senders.apns(headers, {"aps": {}, "k": "x" * (5121 - empty)})).json()["reason"] == "PayloadTooLarge"


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", None, 405, "MethodNotAllowed"),
        ("POST", "/3/devices/" + TOKEN, 404, "BadPath"),
        ("POST", "/3/device/", 400, "MissingDeviceToken"),
        ("POST", "/3/device/" + "zz" * 32, 400, "BadDeviceToken"),
    ],
)
async def test_request_line_refusals(senders: Senders, method: str, path: str | None, status: int, reason: str) -> None:
    answer = await senders.apns(method=method, path=path)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)


async def test_repeated_headers_are_refused(senders: Senders) -> None:
    pairs = [("authorization", f"bearer {senders.apns_token}"), ("apns-topic", "a"), ("apns-topic", "b")]
    answer = await senders.client.post(f"{senders.urls.apns}/3/device/{TOKEN}", headers=pairs, content=b"{}")
    assert answer.json() == {"reason": "DuplicateHeaders"}


async def test_a_der_signature_is_refused(senders: Senders) -> None:
    """Apple's own shell sample signs with openssl, which writes DER; the contract is R then S (RFC 7518)."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(senders.apns_key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signed = senders.apns_token.rpartition(".")[0]
    der = base64.urlsafe_b64encode(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))).rstrip(b"=").decode()
    answer = await senders.apns({"authorization": f"bearer {signed}.{der}"})
    assert (answer.status_code, answer.json()["reason"]) == (403, "InvalidProviderToken")


@pytest.mark.parametrize(
    ("age_s", "kid", "iss", "reason"),
    [
        (3660, "ABCDE12345", "FGHIJ67890", "ExpiredProviderToken"),
        (-3660, "ABCDE12345", "FGHIJ67890", "InvalidProviderToken"),
        (0, "ZZZZZ12345", "FGHIJ67890", "InvalidProviderToken"),
        (0, "ABCDE12345", "ZZZZZ67890", "InvalidProviderToken"),
    ],
)
async def test_provider_token_refusals(senders: Senders, age_s: int, kid: str, iss: str, reason: str) -> None:
    token = provider_token(senders.apns_key, iat=time.time() - age_s, kid=kid, iss=iss)
    answer = await senders.apns({"authorization": f"bearer {token}"})
    assert (answer.status_code, answer.json()["reason"]) == (403, reason)


async def test_a_provider_token_issued_within_20_minutes_on_one_connection_is_refused(senders: Senders) -> None:
    now = time.time()
    old, soon = (provider_token(senders.apns_key, iat=now - age) for age in (3000, 1860))
    answers = [await senders.apns({"authorization": f"bearer {token}"}) for token in (old, soon, old)]
    assert [answer.status_code for answer in answers] == [200, 429, 200]
    assert answers[1].json()["reason"] == "TooManyProviderTokenUpdates"


@pytest.mark.parametrize(
    ("team", "environment", "reason"),
    [
        ("FGHIJ67890", None, "UnrelatedKeyIdInToken"),
        ("OTHER67890", None, "InvalidProviderToken"),
    ],
)
async def test_a_connection_stays_with_its_first_key_and_team(
    senders: Senders, team: str, environment: str | None, reason: str
) -> None:
    key = await senders.admin(
        "POST", "/apns/keys", {"key_id": "KEY2345678", "team_id": team, "topics": ["com.example.demo"]}
    )
    other = provider_token(key["private_key"], kid="KEY2345678", iss=team)
    assert (await senders.apns()).status_code == 200
    answer = await senders.apns({"authorization": f"bearer {other}"})
    assert (answer.status_code, answer.json()["reason"]) == (403, reason)


async def test_a_key_of_the_other_environment_is_refused(senders: Senders) -> None:
    wanted = {"key_id": "KEY2345678", "team_id": "T", "topics": ["com.example.demo"], "environment": "sandbox"}
    key = await senders.admin("POST", "/apns/keys", wanted)
    token = provider_token(key["private_key"], kid="KEY2345678", iss="T")
    answer = await senders.apns({"authorization": f"bearer {token}"})
    assert (answer.status_code, answer.json()["reason"]) == (403, "BadEnvironmentKeyInToken")


async def test_a_revoked_key_is_refused(senders: Senders) -> None:
    assert (await senders.apns()).status_code == 200
    await senders.admin("DELETE", "/apns/keys/ABCDE12345")
    assert (await senders.apns()).json()["reason"] == "InvalidProviderToken"


async def test_a_dead_token_is_gone_since_the_millisecond_it_died(senders: Senders) -> None:
    await senders.admin("POST", f"/tokens/{TOKEN}/kill", {"at": 1_700_000_000_123})
    answer = await senders.apns({"apns-id": NID})
    assert (answer.status_code, answer.json()) == (410, {"reason": "Unregistered", "timestamp": 1_700_000_000_123})
    assert answer.headers["apns-id"] == NID


async def test_tokens_of_another_topic_or_environment_are_refused(senders: Senders) -> None:
    for extra, reason in (
        ({"topic": "com.example.else"}, "DeviceTokenNotForTopic"), ({"environment": "sandbox"}, "BadDeviceToken"),
    ):  # fmt: skip
        made = await senders.admin("POST", "/tokens", {"platform": "ios", **extra})
        assert (await senders.apns(token=made["tokens"][0])).json()["reason"] == reason


async def test_only_tokens_of_the_lab_are_good_when_asked_for(senders: Senders, lab: Lab) -> None:
    lab.tokens.accept_any = False
    made = await senders.admin("POST", "/tokens", {"platform": "ios", "count": 2})
    assert (await senders.apns()).json() == {"reason": "BadDeviceToken"}
    assert [(await senders.apns(token=token)).status_code for token in made["tokens"]] == [200, 200]


@pytest.mark.parametrize(
    ("push_type", "suffix", "aps"),
    [
        ("liveactivity", ".push-type.liveactivity", {"event": "update", "timestamp": 1, "content-state": {}}),
        ("widgets", ".push-type.widgets", {"content-changed": True}),
        ("controls", ".push-type.controls", {"content-changed": True}),
        ("location", ".location-query", {}),
        ("complication", ".complication", {}),
        ("fileprovider", ".pushkit.fileprovider", {}),
        ("pushtotalk", ".voip-ptt", {}),
    ],
)
async def test_every_push_type_has_its_topic(senders: Senders, push_type: str, suffix: str, aps: dict) -> None:
    headers = {"apns-push-type": push_type, "apns-topic": "com.example.demo" + suffix}
    assert (await senders.apns(headers, {"aps": aps})).status_code == 200
