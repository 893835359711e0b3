"""What an attacker sends in place of a credential, row by row: each is refused, stores nothing, and is not quoted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.adapters.rest.issuers import (
    AUDIENCE,
    NOW_S,
    SECRET,
    SERVICES,
    claims,
    ec_key,
    jwk,
    public_pem,
    rsa_key,
    service_token,
    services_issuer,
    token,
    user_token,
    users_issuer,
)
from tests.adapters.rest.service import Service, shown
from tests.shows import shows
from waypost.domain.scope import Scope

pytestmark = pytest.mark.asyncio

SUBMIT = ("POST", "/v1/notifications")
OWN_DEVICES = ("GET", "/v1/devices/user-1")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service with keys of two apps, and issuers of both; nothing is ever stored in it, and its clock stands."""
    return built(tmp_path_factory.mktemp("issuers"))


@pytest.fixture
def fresh(tmp_path: Path) -> Service:
    """One of a test's own."""
    return built(tmp_path)


def built(folder: Path) -> Service:
    """A service, and who is known to it."""
    service = Service(issuers=[users_issuer(folder), users_issuer(folder, "other"), services_issuer()])
    asyncio.run(service.add_keys())
    return service


async def ask(
    service: Service, headers: Sequence[tuple[str, str]], call: tuple[str, str] = OWN_DEVICES, **more: Any
) -> httpx.Response:
    """One call with these headers and no others that say who calls."""
    async with service.client() as client:
        del client.headers["authorization"]
        return await client.request(*call, headers=list(headers), **more)


def bearer(text: str) -> list[tuple[str, str]]:
    """As it is meant to be presented."""
    return [("authorization", f"Bearer {text}")]


def tampered(text: str) -> str:
    """The same token with another user's name in it."""
    head, _, signature = text.split(".")
    return f"{head}.{user_token('user-2').split('.')[1]}.{signature}"


@shows("S1-22")
async def test_good_ones_come_through(service: Service) -> None:
    """Without this, no refusal below would show anything."""
    for good in (
        user_token(),
        token(claims(), ec_key(), "ES256", "e"),
        token(claims(aud=[AUDIENCE, "another service"]), rsa_key()),
        token(claims(exp=NOW_S + 1.5, nbf=NOW_S), rsa_key()),
        service_token(Scope.DEVICES),
        service.made.text,
    ):
        assert (await ask(service, bearer(good))).status_code == 200


DEEP = b'{"a":' * 1_000 + b"1" + b"}" * 1_000

FORGED: dict[str, Callable[[], str]] = {
    "nothing at all": lambda: "",
    "no token": lambda: "a.b.c",
    "two parts": lambda: "a.b",
    "four parts": lambda: f"{user_token()}.x",
    "another's signature": lambda: tampered(user_token()),
    "no signature": lambda: user_token().rpartition(".")[0] + ".",
    "the attacker's own key under the issuer's id": lambda: token(claims(), rsa_key(n=1)),
    "the attacker's own key under an unknown id": lambda: token(claims(), rsa_key(n=1), kid="b"),
    "without an id, though the set has two kinds": lambda: token(claims(), rsa_key(n=1), kid=None),
    "alg none": lambda: token(claims(), None, "none"),
    "alg None, NONE": lambda: token(claims(), None, "NONE"),
    "alg none, the header of a key": lambda: token(claims(), None, "none", kid=None),
    "no alg": lambda: token(claims(), None, ""),
    "alg is a list": lambda: token(claims(), rsa_key(), alg=["RS256"]),  # type: ignore[arg-type] # as the attacker has it
    "an algorithm that is not configured": lambda: token(claims(), rsa_key(), "RS512"),
    "key confusion: the public RSA key as a secret": lambda: token(claims(), public_pem(rsa_key()), "HS256"),
    "key confusion: the JWK as a secret": lambda: token(claims(), json.dumps(jwk(rsa_key(), "a")).encode(), "HS256"),
    "key confusion: an EC token under an RSA key's id": lambda: token(claims(), ec_key(), "ES256", "a"),
    "key confusion: RS256 under an EC key's id": lambda: token(claims(), rsa_key(n=1), "RS256", "e"),
    "key confusion: the users' issuer by the services' secret": lambda: token(claims(), SECRET.encode(), "HS256"),
    "a secret that is not the issuer's": lambda: token(claims(iss=SERVICES), b"x" * 64, "HS256"),
    "the services' issuer, another HS algorithm": lambda: token(claims(iss=SERVICES), SECRET.encode(), "HS512"),
    "the key in the header (jwk)": lambda: token(claims(), rsa_key(n=1), jwk=jwk(rsa_key(n=1), "a")),
    "the key at a URL in the header (jku, x5u)": lambda: token(
        claims(), rsa_key(n=1), jku="http://127.0.0.1:1/keys", x5u="http://127.0.0.1:1/keys"
    ),
    "a path in the id": lambda: token(claims(), rsa_key(n=1), kid="../../../../dev/null"),
    "SQL in the id": lambda: token(claims(), rsa_key(n=1), kid="a' UNION SELECT 'x"),
    "an id of another kind": lambda: token(claims(), rsa_key(), kid=7),  # type: ignore[arg-type] # as above
    "a huge id": lambda: token(claims(), rsa_key(), kid="a" * 257),
    "a critical extension that nobody knows": lambda: token(claims(), rsa_key(), crit=["x"], x=1),
    "an unencoded payload (b64)": lambda: token(claims(), rsa_key(), b64=False, crit=["b64"]),
    "a header that is no object": lambda: ".".join(["W10", *user_token().split(".")[1:]]),
    "claims that are no object": lambda: token(b"[]", rsa_key()),
    "claims that are not JSON": lambda: token(b"{", rsa_key()),
    "claims that are not UTF-8": lambda: token(b'{"sub": "\xff"}', rsa_key()),
    "deep claims": lambda: token(DEEP, rsa_key()),
    "a huge token": lambda: token(claims(more="x" * 9_000), rsa_key()),
    "expired": lambda: token(claims(exp=NOW_S - 31), rsa_key()),
    "expired, by its age": lambda: token(claims(iat=NOW_S - 90_000, exp=NOW_S + 60), rsa_key()),
    "without an end": lambda: token(claims(exp=None), rsa_key()),
    "without a beginning": lambda: token(claims(iat=None), rsa_key()),
    "an end that is text": lambda: token(claims(exp="9999999999"), rsa_key()),
    "an end that is true": lambda: token(claims(exp=True), rsa_key()),
    "an end beyond all numbers": lambda: token(
        b'{"iss":"https://login.example","aud":"waypost-demo","sub":"user-1","iat":1,"exp":1e400}', rsa_key()
    ),
    "not yet valid": lambda: token(claims(nbf=NOW_S + 31), rsa_key()),
    "issued in the future": lambda: token(claims(iat=NOW_S + 31), rsa_key()),
    "for another audience": lambda: token(claims(aud="another service"), rsa_key()),
    "for no audience": lambda: token(claims(aud=None), rsa_key()),
    "for an audience that is an object": lambda: token(claims(aud={"a": 1}), rsa_key()),
    "for two apps at once": lambda: token(claims(aud=["waypost-demo", "waypost-other"]), rsa_key()),
    "of an unknown issuer": lambda: token(claims(iss="https://evil.example"), rsa_key()),
    "of no issuer": lambda: token(claims(iss=None), rsa_key()),
    "of an issuer that is a list": lambda: token(claims(iss=["https://login.example"]), rsa_key()),
    "of nobody": lambda: token(claims(sub=None), rsa_key()),
    "of a number": lambda: token(claims(sub=7), rsa_key()),
    "of an empty name": lambda: token(claims(sub=""), rsa_key()),
    "of a name with a line break": lambda: token(claims(sub="user-1\n"), rsa_key()),
    "of a name too long": lambda: token(claims(sub="u" * 123), rsa_key()),
    "a key of the right shape": lambda: "wp_aaaaaaaa_" + "a" * 52,
    "a huge key": lambda: "wp_aaaaaaaa_" + "a" * 9_000,
}


@shows("S1-22")
@pytest.mark.parametrize("row", FORGED)
async def test_a_forged_credential_is_401_and_not_quoted(service: Service, row: str) -> None:
    text = FORGED[row]()
    for call in (OWN_DEVICES, SUBMIT):
        answer = await ask(service, bearer(text), call, **({"json": shown()} if call is SUBMIT else {}))
        assert answer.status_code == 401, answer.text
        assert answer.json()["code"] == "unauthenticated"
        assert answer.headers["www-authenticate"] == 'Bearer realm="waypost"'
        for part in [text, *text.split(".")]:
            assert len(part) < 8 or part not in answer.text
    assert not service.store.rows
    assert not service.telemetry.events


async def test_the_same_prefix_with_another_secret_is_401(service: Service) -> None:
    wrong = service.made.text[:-1] + ("a" if service.made.text[-1] != "a" else "b")
    assert (await ask(service, bearer(wrong))).status_code == 401


async def test_a_token_that_was_believed_ends_when_it_says(fresh: Service) -> None:
    """Replayed a moment later, it is not believed from memory."""
    short = token(claims(exp=NOW_S + 1), rsa_key())
    assert (await ask(fresh, bearer(short))).status_code == 200
    fresh.clock.advance(30_999)  # the leeway is 30 s
    assert (await ask(fresh, bearer(short))).status_code == 200
    fresh.clock.advance(1)
    assert (await ask(fresh, bearer(short))).status_code == 401


async def test_a_replayed_request_with_its_key_is_the_same_notification(fresh: Service) -> None:
    """Whoever replays all of a request gets the first one's id, and nobody is told twice."""
    headers = [*bearer(service_token(Scope.SEND_ANY_USER)), ("idempotency-key", "k1")]
    first, again = [await ask(fresh, headers, SUBMIT, json=shown()) for _ in range(2)]
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]


SMUGGLED: dict[str, Callable[[Service], list[tuple[str, str]]]] = {
    "two authorization headers": lambda s: [*bearer(s.made.text), *bearer(s.others.text)],
    "the same one twice": lambda s: [*bearer(s.made.text), *bearer(s.made.text)],
    "a key beside a token": lambda s: [*bearer(user_token()), ("x-api-key", s.made.text)],
    "a key beside a key": lambda s: [("x-api-key", s.made.text), *bearer(s.others.text)],
    "two key headers, in other letters": lambda s: [("X-API-KEY", s.made.text), ("x-api-key", s.others.text)],
    "an empty one beside a good one": lambda s: [("x-api-key", ""), *bearer(s.made.text)],
    "two in one line": lambda s: [("authorization", f"Bearer {s.made.text}, Bearer {s.others.text}")],
    "another scheme": lambda s: [("authorization", f"Basic {s.made.text}")],
    "no scheme": lambda s: [("authorization", s.made.text)],
    "in a cookie": lambda s: [("cookie", f"authorization={s.made.text}")],
    "a header that only looks like it": lambda s: [("x-api_key", s.made.text), ("x_api_key", s.made.text)],
}


@pytest.mark.parametrize("row", SMUGGLED)
async def test_a_smuggled_credential_is_401(service: Service, row: str) -> None:
    answer = await ask(service, SMUGGLED[row](service))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("call", ["/v1/devices/user-1?access_token={}", "/v1/devices/user-1?api_key={}"])
async def test_a_credential_in_the_query_is_none(service: Service, call: str) -> None:
    """It would be in every log on the way."""
    assert (await ask(service, [], ("GET", call.format(service.made.text)))).status_code == 401


@pytest.mark.parametrize("value", ["bearer {}", "BEARER {}", "Bearer   {}", "  Bearer {}  "])
async def test_case_and_space_make_no_difference(service: Service, value: str) -> None:
    """RFC 9110 section 11.1: schemes are told without regard to case."""
    assert (await ask(service, [("authorization", value.format(service.made.text))])).status_code == 200


@shows("S3-21")
@pytest.mark.parametrize(
    ("named", "status"), [(None, 200), ("user-1", 200), ("user-2", 403), ("user-1%20", 403), ("", 400)]
)
async def test_the_user_header_beside_a_users_token_changes_nobody(
    service: Service, named: str | None, status: int
) -> None:
    """Whatever scopes the token has: who calls is in the token."""
    headers = bearer(user_token("user-1", *Scope)) + ([] if named is None else [("x-waypost-user", named)])
    assert (await ask(service, headers, ("GET", "/api/notifications"))).status_code == status


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_two_names_of_users_are_refused(service: Service, method: str) -> None:
    """A proxy that adds its own to what came would otherwise leave it to chance who is meant."""
    headers = [*bearer(service.made.text), ("x-waypost-user", "user-1"), ("X-Waypost-User", "user-2")]
    answer = await ask(service, headers, (method, "/api/notifications"), json={"user_id": "user-1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


async def test_a_backend_speaks_for_a_user_with_that_scope_alone(service: Service) -> None:
    call, named = ("GET", "/api/notifications"), [("x-waypost-user", "user-1")]
    answer = await ask(service, [*bearer(service_token(Scope.READ, Scope.SEND)), *named], call)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert 'scope="send:any-user"' in answer.headers["www-authenticate"]
    both = [*bearer(service_token(Scope.READ, Scope.SEND_ANY_USER)), *named]
    assert (await ask(service, both, call)).status_code == 200


@shows("S3-30")
async def test_a_user_sends_to_themselves_alone(fresh: Service) -> None:
    """S3-30: an ordinary user may not create for another; one whom the issuer calls an administrator may."""
    call, body = ("POST", "/api/notifications"), {"user_id": "user-2", "title": "Hello", "body": "You"}
    nothing = await ask(fresh, bearer(user_token()), call, json=body | {"user_id": "user-1"})
    other = await ask(fresh, bearer(user_token("user-1", Scope.SEND)), call, json=body)
    own = await ask(fresh, bearer(user_token("user-1", Scope.SEND)), call, json=body | {"user_id": "user-1"})
    admin = await ask(fresh, bearer(user_token("user-1", Scope.SEND_ANY_USER)), call, json=body)
    assert [each.status_code for each in (nothing, other, own, admin)] == [403, 403, 201, 201]


async def test_words_beyond_what_may_be_claimed_add_nothing(tmp_path: Path) -> None:
    service = Service(issuers=[users_issuer(tmp_path, claimed_scopes=(Scope.SEND,))])
    headers = bearer(user_token("user-1", *Scope))
    body = {"user_id": "user-2", "title": "Hello", "body": "You"}
    assert (await ask(service, headers, ("POST", "/api/notifications"), json=body)).status_code == 403
    own = await ask(service, headers, ("POST", "/api/notifications"), json=body | {"user_id": "user-1"})
    assert own.status_code == 201
