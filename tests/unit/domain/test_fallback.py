"""The credential that a delivery goes out with, by tables."""

from __future__ import annotations

import pytest

from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.fallback import Detour, Fallbacks, Next, Nobody, Standing, detour, is_for_nobody, way
from waypost.domain.ids import AppId
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)

FIRST, SECOND, THIRD = (CredentialId(AppId("demo"), Channel("sms"), name) for name in ("", "backup", "third"))
WELL = 1 << 30
DENIED = CredentialRejected("20003", "the account is refused")
NOT_HERE = Refused("21408", "the account may not send to this region", elsewhere=True)
AWAY = Unreachable("connect", "refused")


def standing(
    credential: CredentialId, room: int = WELL, *, is_denied: bool = False, has_refused: bool = False
) -> Standing:
    """How a credential stands, well if nothing is said."""
    return Standing(credential, room, is_denied, has_refused)


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        ([standing(FIRST), standing(SECOND)], FIRST),
        ([standing(FIRST, 0), standing(SECOND)], SECOND),
        ([standing(FIRST, 1), standing(SECOND)], FIRST),
        ([standing(FIRST, 1, is_denied=True), standing(SECOND)], FIRST),
        ([standing(FIRST, has_refused=True), standing(SECOND)], SECOND),
        ([standing(FIRST, 0), standing(SECOND, 0), standing(THIRD)], THIRD),
        ([standing(FIRST, 0), standing(SECOND, has_refused=True)], None),
        ([standing(FIRST, -1), standing(SECOND, 0)], None),
    ],
    ids=["well", "open", "probe", "probe of one denied", "refused this", "third", "none", "given to others"],
)
def test_the_first_that_is_well_sends(standings: list[Standing], expected: CredentialId | None) -> None:
    assert way(standings) == expected


B_TAKES = [standing(FIRST, 0), standing(SECOND)]
B_IS_AWAY = [standing(FIRST, 0, is_denied=True), standing(SECOND, 0)]
ALL_DENIED = [standing(FIRST, 0, is_denied=True), standing(SECOND, 0, is_denied=True)]
ALL_REFUSED = [standing(FIRST, has_refused=True), standing(SECOND, 0, is_denied=True)]
ALONE = [standing(FIRST, 0, is_denied=True)]


@pytest.mark.parametrize(
    ("outcome", "standings", "is_open", "fails", "expected"),
    [
        (DENIED, B_TAKES, True, False, Next),
        (DENIED, B_TAKES, False, False, Next),
        (DENIED, B_IS_AWAY, True, False, None),
        (DENIED, B_IS_AWAY, True, True, None),
        (DENIED, ALL_DENIED, True, False, None),
        (DENIED, ALL_DENIED, True, True, Nobody),
        (DENIED, ALL_REFUSED, False, True, Nobody),
        (DENIED, ALONE, True, False, None),
        (DENIED, ALONE, True, True, Nobody),
        (NOT_HERE, B_TAKES, False, False, Next),
        (NOT_HERE, B_IS_AWAY, False, True, None),
        (AWAY, B_TAKES, True, False, Next),
        (AWAY, B_TAKES, False, False, None),
        (AWAY, ALL_DENIED, True, True, None),
        (Refused("21617", "the text is too long"), B_TAKES, True, True, None),
        (Unanswered("503", "Twilio failed"), B_TAKES, True, True, None),
        (Throttled("20429", 1_000, whole=True), B_TAKES, True, True, None),
        (Gone("21211"), B_TAKES, True, True, None),
        (Taken("SM1"), B_TAKES, True, True, None),
    ],
)
def test_what_the_account_did_not_take_goes_to_the_next(
    outcome: Outcome, standings: list[Standing], *, is_open: bool, fails: bool, expected: type[Detour] | None
) -> None:
    """Nothing that may have been taken, and nothing that is wrong with the message or its address."""
    found = detour(outcome, standings, is_open=is_open, fails=fails)
    assert (None if found is None else type(found)) is expected
    if isinstance(found, Next | Nobody):
        assert isinstance(outcome, CredentialRejected | Refused | Unreachable)
        assert (found.code, found.why) == (outcome.code, outcome.why)


def test_a_probe_of_the_only_account_is_made_also_where_refusals_fail() -> None:
    """Otherwise nothing would find out that it was mended."""
    assert not is_for_nobody([standing(FIRST, 1, is_denied=True)], fails=True)
    assert is_for_nobody([standing(FIRST, 0, is_denied=True)], fails=True)
    assert not is_for_nobody([standing(FIRST, 0)], fails=True), "a provider that is away comes back"


def test_each_stands_in_for_each_the_one_that_was_chosen_first() -> None:
    fallbacks = Fallbacks.of([[FIRST, SECOND, THIRD]])
    assert fallbacks.chain(FIRST) == (FIRST, SECOND, THIRD)
    assert fallbacks.chain(SECOND) == (SECOND, FIRST, THIRD)
    alone = CredentialId(AppId("other"), Channel("sms"))
    assert fallbacks.chain(alone) == (alone,)


def test_a_refusal_of_the_account_is_what_a_sender_says_whatever_its_reach() -> None:
    for reach in Reach:
        denied = CredentialRejected("20003", "the account is refused", reach)
        assert isinstance(detour(denied, B_TAKES, is_open=False, fails=False), Next)
