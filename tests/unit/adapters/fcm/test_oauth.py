"""Access tokens with an odd life, or that are refused at once, do not make a storm of requests for new ones."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.http2.simulated import simulate
from waypost.channels.fcm.grants import Grant, Problem, _read
from waypost.channels.fcm.oauth import LEAST_LIFE_S, AccessTokens
from waypost.domain.outcome import CredentialRejected, Unreachable


class Source:
    """Gives tokens that are said to be good for so long, and counts."""

    def __init__(self, expires_in: float) -> None:
        self.given = 0
        self._expires_in = expires_in

    async def ask(self) -> Grant | Problem:
        """See Grants."""
        self.given += 1
        return Grant(f"t{self.given}", self._expires_in)


async def asked_in(seconds: float, expires_in: float, *, refuse: bool = False) -> tuple[int, list[CredentialRejected]]:
    """How often is asked in that time of the loop, and what was denied; *refuse* each token as soon as it is there."""
    source, denied = Source(expires_in), list[CredentialRejected]()
    loop = asyncio.get_running_loop()
    tokens = AccessTokens(source, loop=loop, on_denied=denied.append)
    tokens.start(ahead=True)
    until = loop.time() + seconds
    while loop.time() < until:
        await asyncio.sleep(0.01)
        if refuse and tokens.current():
            tokens.renew(tokens.current())
    await tokens.stop()
    return source.given, denied


@pytest.mark.parametrize("expires_in", [0, -1, -1e300, 0.001, 1])
def test_tokens_without_a_life_are_used_for_ten_seconds_and_asked_for_every_eight(expires_in: float) -> None:
    """700 requests a second before."""
    assert simulate(asked_in(60, expires_in))[0] <= 8


def test_a_token_without_a_life_is_usable() -> None:
    async def current() -> str:
        tokens = AccessTokens(Source(-5), loop=asyncio.get_running_loop(), on_denied=lambda _: None)
        tokens.start(ahead=True)
        await asyncio.sleep(LEAST_LIFE_S / 2)
        said = tokens.current()
        await tokens.stop()
        return said

    assert simulate(current()) == "t1"


@pytest.mark.parametrize("expires_in", [3599, 1e300])
def test_a_token_lasts_a_day_at_most(expires_in: float) -> None:
    assert simulate(asked_in(100, expires_in))[0] == 1


def test_tokens_that_are_refused_at_once_are_asked_for_ever_more_slowly() -> None:
    given_, denied = simulate(asked_in(60, 3599, refuse=True))
    assert given_ <= 8
    assert {problem.code for problem in denied} == {"UNAUTHENTICATED"}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(anything, anything)
def test_a_token_is_read_whatever_stands_beside_it(expires_in: object, token_type: object) -> None:
    said = {"access_token": "ya29.x", "expires_in": expires_in, "token_type": token_type}
    got = _read(200, msgspec.json.encode(said), None)
    assert isinstance(got, Grant)
    assert got.access_token == "ya29.x"


@given(anything, st.sampled_from([400, 401, 403]))
def test_a_refusal_is_read_whatever_stands_beside_it(description: object, status: int) -> None:
    said = {"error": "invalid_grant", "error_description": description}
    got = _read(status, msgspec.json.encode(said), None)
    assert isinstance(got, CredentialRejected)
    assert got.code == "invalid_grant"


@pytest.mark.parametrize("token", [None, 7, "", "a\nb", "é", "\0"])
def test_what_cannot_stand_in_a_header_is_no_token(token: object) -> None:
    assert isinstance(_read(200, msgspec.json.encode({"access_token": token}), None), Unreachable)
