"""What decides about a notification: the user's choices, the hours, the caps, and what passes all of them."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from tests.shows import shows
from tests.unit.domain.made import CHANNELS, device, notification
from waypost.bootstrap.registry import load
from waypost.domain.capping import Full, Verdicts
from waypost.domain.channel import APNS, Channel
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.device import EMAIL
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.preferences import NOTHING_SAID, ORDINARY, Preferences, TypeChoice, TypeSettings, wants
from waypost.domain.quiet_hours import Hours
from waypost.domain.recipient import Recipient
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import with_rules
from waypost.domain.settlement import Parked, Suppressed
from waypost.domain.time import HOUR_MS, Instant
from waypost.features.preferences.deciding import FEATURE, RULES, Facts
from waypost.features.preferences.settings import check_preferences

DEMO, MAIL = AppId("demo"), Channel("email")
TABLE = RoutingTable(
    CHANNELS | {EMAIL: MAIL},
    {DEMO: {APNS: (CredentialId(DEMO, APNS),), MAIL: (CredentialId(DEMO, MAIL),)}},
    with_rules(RULES),
    families={APNS: "push", MAIL: "email"},
)
PHONE, MAILBOX = device(), device(platform=EMAIL, device_id="mail", token="ann@example.com")
EVENING = Instant(1_800_000_000_000 + 15 * HOUR_MS)  # 15 January 2027, 23:00 in UTC
NIGHT = Hours.parse("22:00-07:00")
OFF, ON = TypeChoice(enabled=False), TypeChoice(enabled=True)
CRITICAL = TypeSettings(critical=True)
NEWS = TypeSettings(enabled=False)
PUSH_ALONE = TypeSettings(channels=("push",))


@pytest.mark.parametrize(
    ("said", "settings", "channel", "expected"),
    [
        (NOTHING_SAID, ORDINARY, "push", True),
        (NOTHING_SAID, NEWS, "push", False),
        (NOTHING_SAID, PUSH_ALONE, "email", False),
        (Preferences(enabled=False), ORDINARY, "push", False),
        (Preferences(channels={"push": False}), ORDINARY, "push", False),
        (Preferences(channels={"push": False}), ORDINARY, "email", True),
        (Preferences(channels={"push": False}, types={"news": ON}), ORDINARY, "push", False),
        (Preferences(types={"news": OFF}), ORDINARY, "push", False),
        (Preferences(types={"other": OFF}), ORDINARY, "push", True),
        (Preferences(types={"news": ON}), NEWS, "push", True),
        (Preferences(types={"news": ON}), PUSH_ALONE, "email", False),
        (Preferences(types={"news": TypeChoice(channels={"email": True})}), PUSH_ALONE, "email", True),
        (Preferences(types={"news": TypeChoice(channels={"email": True})}), NEWS, "email", True),
        (Preferences(types={"news": TypeChoice(channels={"email": True})}), NEWS, "push", False),
        (Preferences(types={"news": TypeChoice(channels={"email": False})}), ORDINARY, "email", False),
        (Preferences(types={"news": TypeChoice(False, {"email": True})}), ORDINARY, "email", False),
    ],
)
@shows("S3-111")
def test_what_a_user_wants(said: Preferences, settings: TypeSettings, channel: str, expected: bool) -> None:
    assert wants(said, "news", settings, channel) is expected


def known(**fields: Any) -> Facts:
    """What decides where nobody says anything, but for *fields*."""
    return replace(Facts(NOTHING_SAID, "news", ORDINARY, ZoneInfo("UTC"), None), **fields)


@pytest.mark.parametrize(
    ("facts", "push", "email"),
    [
        (None, None, None),
        (known(), None, None),
        (known(said=Preferences(types={"news": OFF})), Suppressed("preference"), Suppressed("preference")),
        (known(said=Preferences(channels={"email": False})), None, Suppressed("preference")),
        (known(said=Preferences(enabled=False), settings=CRITICAL), None, None),
        (known(hours=NIGHT), Parked("rule:quiet_hours", Instant(EVENING + 8 * HOUR_MS)), ...),
        (known(hours=NIGHT, settings=TypeSettings(quiet_hours="skip")), Suppressed("quiet_hours"), ...),
        (known(hours=NIGHT, zone=ZoneInfo("Asia/Tokyo")), None, None),
        (known(full=Verdicts(None, {"email": Full(None)})), None, Suppressed("frequency_limit")),
        (known(full=Verdicts(None, {"email": Full(None, True)})), None, Suppressed("degraded")),
        (known(full=Verdicts(Full(EVENING))), Parked("rule:frequency_limit", EVENING), ...),
    ],
)
@shows("S3-111", "S3-112")
def test_the_rules_decide_for_each_channel(facts: Facts | None, push: object, email: object) -> None:
    recipient = Recipient((PHONE, MAILBOX), {FEATURE: facts})
    made = notification(device_ids=("d", "mail"), content=Content(title="News", type="news"))
    made = replace(made, expires_at=Instant(EVENING + 24 * HOUR_MS))
    first, second = TABLE.route(made, recipient, EVENING).targets
    assert first.settlement == push
    assert second.settlement == (push if email is ... else email)


def test_what_passes_and_whose_zone_is_unknown_is_said() -> None:
    facts = known(said=Preferences(enabled=False), settings=CRITICAL, unknown_zone="Mars/Base")
    routed = TABLE.route(notification(), Recipient((PHONE,), {FEATURE: facts}), EVENING)
    assert [(each.rule, str(getattr(each.verdict, "what", ""))) for each in routed.rulings][:2] == [
        ("preference", "turned off, but critical"),
        ("time_zone", "Mars/Base is unknown here: UTC counts"),
    ]


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("time_zone: Mars/Base", r"apps\.demo\.time_zone: no time zone"),
        ("preferences: {cap: {limit: 3, per: 32d}}", r"apps\.demo\.preferences\.cap\.per: is 31 days"),
        ("types: {news: {channel_caps: {sms: {limit: 3, per: 745h}}}}", r"types\.news\.channel_caps\.sms\.per"),
        ("preferences: {quiet_hours: 22-07}", r"apps\.demo\.preferences\.quiet_hours: is written as"),
        ("types: {news: {cap: {limit: 3, over: degrade}}}", r"news\.cap\.over: `degrade` needs a feed"),
        ("preferences: {cap: {limit: 3, over: degrade}}", r"preferences\.cap\.over: `degrade` needs a feed"),
        ("types: {news: {cap: {limit: 3, per: week}}}", r"apps\.demo\.types\.news\.cap\.per"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Any, said: str, path: str) -> None:
    file = tmp_path / "waypost.yaml"
    file.write_text(f"apps:\n  demo:\n    {said}")
    with pytest.raises(ConfigurationError, match=path):
        check_preferences(load(file, {}))
