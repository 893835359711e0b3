"""Telephone numbers as people write them, and as they are stored."""

from __future__ import annotations

import pytest

from waypost.channels.sms.registration import canonical, registration_check
from waypost.domain.device import PHONE, Registration
from waypost.domain.ids import AppId, DeviceId, UserId

CHECK = registration_check(AppId("demo"), None)


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("+491701234567", "+491701234567"),
        ("+49 170 123-45 67", "+491701234567"),
        ("0049 (170) 1234567", "+491701234567"),
        ("+1.555.010.0199", "+15550100199"),
        ("+49\u00a0170\u00a01234567", "+491701234567"),
    ],
)
def test_a_number_is_stored_in_one_form(said: str, stored: str) -> None:
    assert canonical(said) == stored
    assert CHECK(Registration(AppId("demo"), UserId("u"), DeviceId("d"), PHONE, stored)) == []


@pytest.mark.parametrize(
    "said", ["0170 1234567", "+0170123456", "+49", "+491701234567890123", "call me", "", "+49170x567890"]
)
def test_what_is_none_is_refused_as_it_was_written(said: str) -> None:
    assert canonical(said) == said
    (fault,) = CHECK(Registration(AppId("demo"), UserId("u"), DeviceId("d"), PHONE, said))
    assert fault.path == "token"
