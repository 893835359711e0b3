"""FCM and its token endpoint refuse what Google refuses, in Google's error formats."""

import json
import time
from typing import Any

import jwt
import pytest

from tests.adapters.lab.senders import ANDROID, Senders
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio

FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"token": None}, "message"),
    ({"topic": "news"}, "message"),
    ({"data": {"n": 1}}, "message.data"),
    ({"data": {"from": "x"}}, "message.data"),
    ({"data": {"google.x": "x"}}, "message.data"),
    ({"data": {"gcm_x": "x"}}, "message.data"),
    ({"android": {"ttl": "3.5"}}, "message.android.ttl"),
    ({"android": {"ttl": "2419201s"}}, "message.android.ttl"),
    ({"android": {"ttl": 60}}, "message.android.ttl"),
    ({"android": {"priority": "high"}}, "message.android.priority"),
    ({"android": {"notification": {"color": "red"}}}, "message.android.notification.color"),
    ({"notification": {"title": 1}}, "message.notification.title"),
    ({"notification": {"text": "a"}}, "message.notification"),
    ({"webpush": {"fcm_options": {"link": "http://x"}}}, "message.webpush.fcm_options.link"),
    ({"token": None, "topic": "/topics/news"}, "message.topic"),
    ({"to": "x"}, "message"),
]


@pytest.mark.parametrize(("message", "field"), FIELDS)
async def test_field_violations_name_the_field(senders: Senders, message: dict, field: str) -> None:
    answer = await senders.fcm(message)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    (detail,) = error["details"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert [violation["field"] for violation in detail["fieldViolations"]] == [field]


async def test_a_message_that_is_too_large_is_refused_without_details(senders: Senders) -> None:
    assert (await senders.fcm({"data": {"k": "x" * 4095}})).status_code == 200
    answer = await senders.fcm({"data": {"k": "x" * 4096}})
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], "details" in error) == (400, "INVALID_ARGUMENT", False)
    topical = await senders.fcm({"token": None, "topic": "news", "data": {"k": "x" * 2048}})
    assert topical.status_code == 400


async def test_an_invalid_token_is_an_invalid_argument_and_an_unknown_fid_is_unregistered(senders: Senders) -> None:
    token, fid = await senders.fcm({"token": "short"}), await senders.fcm({"token": None, "fid": "short"})
    assert token.json()["error"]["details"][0]["errorCode"] == "INVALID_ARGUMENT"
    assert (fid.status_code, fid.json()["error"]["details"][0]["errorCode"]) == (404, "UNREGISTERED")


async def test_a_dead_token_is_not_found_and_unregistered(senders: Senders) -> None:
    await senders.admin("POST", f"/tokens/{ANDROID}/kill")
    answer = await senders.fcm()
    assert (answer.status_code, answer.json()) == (
        404,
        {
            "error": {
                "code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND",
                "details": [
                    {
                        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                        "errorCode": "UNREGISTERED",
                    }
                ],
            }
        },
    )  # fmt: skip


async def test_a_token_of_another_project_is_a_sender_mismatch(senders: Senders) -> None:
    made = await senders.admin("POST", "/tokens", {"platform": "android", "topic": "other-project"})
    answer = await senders.fcm({"token": made["tokens"][0]})
    assert (answer.status_code, answer.json()["error"]["details"][0]["errorCode"]) == (403, "SENDER_ID_MISMATCH")


@pytest.mark.parametrize(
    ("headers", "project", "status", "canonical"),
    [
        ({"authorization": None}, "lab-project", 401, "UNAUTHENTICATED"),
        ({"authorization": "Bearer ya29.unknown"}, "lab-project", 401, "UNAUTHENTICATED"),
        ({}, "other", 403, "PERMISSION_DENIED"),
        ({"content-type": "text/plain"}, "lab-project", 400, "INVALID_ARGUMENT"),
    ],
)
async def test_callers_that_may_not_send(
    senders: Senders, headers: dict, project: str, status: int, canonical: str
) -> None:
    answer = await senders.fcm(headers=headers, project=project)
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, canonical)
    assert "details" not in answer.json()["error"]


async def test_a_wrong_path_is_an_html_404(senders: Senders) -> None:
    answer = await senders.client.post(f"{senders.urls.fcm}/fcm/send", json={})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=UTF-8")


async def test_validate_only_delivers_nothing_and_has_a_fake_id(senders: Senders) -> None:
    answer = await senders.fcm(validate_only=True)
    assert answer.json() == {"name": "projects/lab-project/messages/fake_message_id"}
    assert (await senders.admin("GET", "/counts"))["fcm"]["accepted"] == 0


async def test_camel_case_names_are_understood(senders: Senders) -> None:
    answer = await senders.fcm({"android": {"collapseKey": "a", "notification": {"channelId": "b"}}})
    assert answer.status_code == 200, answer.text


async def test_expired_access_tokens_are_refused(senders: Senders, lab: Lab) -> None:
    assert (await senders.fcm()).status_code == 200
    assert await senders.admin("POST", "/oauth/revoke") == {"revoked": 1}
    assert (await senders.fcm()).status_code == 401


CLAIMS: list[tuple[dict[str, Any], str]] = [  # times in seconds from now
    ({"aud": "https://oauth2.googleapis.com/token"}, "invalid_grant"),
    ({"iss": "someone@else"}, "invalid_grant"),
    ({"iat": 0, "exp": 3700}, "invalid_grant"),
    ({"iat": -7200, "exp": -3600}, "invalid_grant"),
    ({"iat": 600, "exp": 1200}, "invalid_grant"),
    ({"scope": "https://www.googleapis.com/auth/drive"}, "invalid_scope"),
    ({"scope": ""}, "invalid_scope"),
]


def at_present(claims: dict[str, Any]) -> dict[str, Any]:
    """The claims with times of the clock, read now: a run may take longer than they differ by."""
    now = int(time.time())
    return {name: now + value if isinstance(value, int) else value for name, value in claims.items()}


@pytest.mark.parametrize(("claims", "error"), CLAIMS)
async def test_assertions_that_are_refused(senders: Senders, claims: dict, error: str) -> None:
    answer = await senders.oauth(**at_present(claims))
    assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_clock_faults_get_googles_text(senders: Senders) -> None:
    answer = await senders.oauth(**at_present({"iat": -7200, "exp": -3600}))
    assert "short-lived token (60 minutes)" in answer.json()["error_description"]


async def test_an_assertion_must_be_rs256_by_the_right_key(senders: Senders) -> None:
    symmetric = await senders.oauth({"assertion": senders.assertion(key="k" * 64, algorithm="HS256")})
    from cryptography.hazmat.primitives.asymmetric import rsa

    other = rsa.generate_private_key(65537, 2048)
    claims = jwt.decode(senders.assertion(), options={"verify_signature": False})
    foreign = await senders.oauth({"assertion": jwt.encode(claims, other, algorithm="RS256")})
    assert [answer.json()["error_description"] for answer in (symmetric, foreign)] == ["Invalid JWT Signature."] * 2


async def test_the_grant_type_is_checked(senders: Senders) -> None:
    answer = await senders.oauth({"grant_type": "client_credentials"})
    assert answer.json()["error"] == "unsupported_grant_type"


async def test_garbage_is_refused_not_failed_on(senders: Senders) -> None:
    await senders.fcm()
    for body in (b"", b"[]", b"{", b'{"message": 3}', b'{"message": {"data": 3, "android": 4, "token": 5}}'):
        answer = await senders.client.post(
            f"{senders.urls.fcm}/v1/projects/lab-project/messages:send", content=body,
            headers={"authorization": f"Bearer {senders.access_token}", "content-type": "application/json"},
        )  # fmt: skip
        assert answer.status_code == 400, (body, answer.text)
        assert json.loads(answer.content)["error"]["status"] == "INVALID_ARGUMENT"
