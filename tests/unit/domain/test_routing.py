"""Routing: which addresses get it, and why the others do not; the rules by tables, their fold by properties."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from tests.unit.domain.made import CHANNELS, NOW, device, notification
from waypost.domain.audience import Audience
from waypost.domain.channel import Channel
from waypost.domain.content import ApnsPushType, Content
from waypost.domain.credential import CredentialId
from waypost.domain.device import Device, Platform, TokenUse
from waypost.domain.ids import AppId, DeviceId
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.domain.routing import (
    DEVICE_MOVED,
    DEVICE_NOT_FOUND,
    NO_CREDENTIAL,
    Candidate,
    Deferred,
    LeftOut,
    Question,
    Routed,
    RoutingTable,
    Rule,
    Verdict,
)
from waypost.domain.rules import INACTIVE, NOT_CHOSEN, OTHER_USE, RULES, UNKNOWN_PLATFORM
from waypost.domain.settlement import Parked, Suppressed
from waypost.domain.time import later

DEMO = AppId("demo")
ALL = {channel: (CredentialId(DEMO, channel),) for channel in CHANNELS.values()}
IOS = device(device_id=DeviceId("i"), platform=Platform("ios"))
ANDROID = device(device_id=DeviceId("a"), platform=Platform("android"))
WEB = device(device_id=DeviceId("w"), platform=Platform("web"))
IMPORTED = device(device_id=DeviceId("u"), platform=Platform("unknown"))
STOPPED = device(device_id=DeviceId("s"), active=False)
CALLS = device(device_id=DeviceId("c"), platform=Platform("ios"), token_use=TokenUse.VOIP)
EVERY = (IOS, ANDROID, WEB, IMPORTED, STOPPED, CALLS)
TO_ALL = Content(to=Audience(Channel("fcm"), "topic", "news"))
CALL = Content(push_type=ApnsPushType.VOIP)


def routed(
    what: Notification,
    devices: Sequence[Device] = EVERY,
    held: Sequence[str] = tuple(ALL),
    rules: Sequence[Rule] = RULES,
    again: Sequence[str] = (),
) -> Routed:
    """What becomes of *what* in an app with the default credentials of some channels."""
    table = RoutingTable(CHANNELS, {DEMO: {channel: ALL[channel] for channel in ALL if channel in held}}, rules)
    return table.route(what, Recipient(devices), NOW, [DeviceId(name) for name in again])


def named(*names: str) -> Notification:
    """A notification narrowed to devices."""
    return notification(device_ids=tuple(DeviceId(name) for name in names))


@shows("S1-02", "S1-46", "S1-47", "S3-50")
@pytest.mark.parametrize(
    ("what", "devices", "held", "expected"),
    [
        pytest.param(notification(), [], ALL, {}, id="no devices, no targets"),
        pytest.param(notification(), EVERY, ALL, {"i": "", "a": "", "w": "", "u": UNKNOWN_PLATFORM}, id="all"),
        pytest.param(notification(), [STOPPED], ALL, {}, id="a deactivated device is no target"),
        pytest.param(named("w"), [IOS, WEB], ALL, {"w": ""}, id="narrowed"),
        pytest.param(named("s", "i", "s"), [IOS], ALL, {"i": "", "s": DEVICE_NOT_FOUND}, id="named, not there"),
        pytest.param(named("s", "i"), [STOPPED, IOS], ALL, {"s": DEVICE_NOT_FOUND, "i": ""}, id="named, deactivated"),
        pytest.param(notification(), [IOS, ANDROID], ["fcm"], {"i": NO_CREDENTIAL, "a": ""}, id="no credential"),
        pytest.param(notification(content=CALL), EVERY, ALL, {"c": ""}, id="to tokens of its use alone"),
        pytest.param(named("c", "i"), [CALLS, IOS], ALL, {"c": OTHER_USE, "i": ""}, id="named, for another use"),
        pytest.param(notification(content=TO_ALL), EVERY, ALL, {"fcm:topic:news": ""}, id="all who listen"),
        pytest.param(notification(content=TO_ALL), [], ["apns"], {"fcm:topic:news": NO_CREDENTIAL}, id="none to them"),
    ],
)
def test_where_it_goes_and_why_not_elsewhere(
    what: Notification, devices: Sequence[Device], held: Sequence[str], expected: dict[str, str]
) -> None:
    """By the names of receipts, in the order of their numbers; an empty reason is sent."""
    targets = routed(what, devices, held).targets
    found = [(each.name, "" if each.settlement is None else each.settlement) for each in targets]
    assert found == [(name, Suppressed(why) if why else "") for name, why in expected.items()]


def test_each_rule_says_what_it_did() -> None:
    """What is left out as nobody meant it is told beside what is suppressed."""
    said = [(each.rule, each.name, each.verdict) for each in routed(named("i", "u", "c", "x", "s"), EVERY).rulings]
    assert said == [
        ("credential", "i", ALL[Channel("apns")][0]),
        ("chosen", "a", LeftOut(NOT_CHOSEN)),
        ("chosen", "w", LeftOut(NOT_CHOSEN)),
        ("platform", "u", Suppressed(UNKNOWN_PLATFORM)),
        ("active", "s", Suppressed(DEVICE_NOT_FOUND)),
        ("token_use", "c", Suppressed(OTHER_USE)),
        ("active", "x", Suppressed(DEVICE_NOT_FOUND)),
    ]
    said = [(each.rule, each.name, each.verdict) for each in routed(notification(), [STOPPED, CALLS, IOS]).rulings]
    assert said == [
        ("active", "s", LeftOut(INACTIVE)),
        ("token_use", "c", LeftOut(OTHER_USE)),
        ("credential", "i", ALL[Channel("apns")][0]),
    ]


def test_a_retry_is_the_same_question_narrowed_to_its_open_targets() -> None:
    """What is gone by then is told apart from what never was."""
    targets = routed(named("i", "w"), [IOS, ANDROID], again=["i", "w"]).targets
    assert [(each.name, each.settlement) for each in targets] == [("i", None), ("w", Suppressed(DEVICE_MOVED))]


def test_all_who_listen_have_an_address_and_no_device() -> None:
    (one,) = routed(notification(content=TO_ALL)).targets
    assert one.way == (ALL[Channel("fcm")][0], TO_ALL.to)


SECOND = CredentialId(DEMO, Channel("fcm"), "shop")


def pick_second(_: Question, candidate: Candidate) -> Verdict | None:
    """A rule that sends to Android with another credential than the default."""
    return SECOND if candidate.channel == "fcm" else None


def test_a_rule_picks_another_credential_than_the_default() -> None:
    """The core's own rule leaves that alone, and gives the others the default."""
    rules = (*RULES[:-1], Rule("second", pick_second), RULES[-1])
    targets = routed(notification(), [IOS, ANDROID], rules=rules).targets
    assert [each.credential for each in targets] == [ALL[Channel("apns")][0], SECOND]


def test_a_rule_puts_an_address_off_and_adds_another() -> None:
    """As quiet hours and a fallback will: what waits is a target, and so is what was added."""
    until = later(NOW, 60_000)

    def wait(_: Question, candidate: Candidate) -> Verdict | None:
        return Deferred(until) if candidate.name == "i" else None

    def fall_back(_: Question, there: Sequence[Candidate]) -> Sequence[Candidate]:
        return [Candidate(DeviceId("w"), WEB, Channel("webpush"))] if len(there) == 1 else []

    rules = (*RULES[:-1], Rule("quiet", wait), Rule("fallback", add=fall_back), RULES[-1])
    targets = routed(notification(), [IOS], rules=rules).targets
    assert [(each.name, each.settlement) for each in targets] == [("i", Parked("rule:quiet", until)), ("w", None)]
    (one,) = routed(msgspec.structs.replace(notification(), expires_at=NOW), [IOS], rules=rules[:-2]).targets
    assert one.settlement == Parked("rule:quiet", NOW), "it waits no longer than it lasts"


def test_without_a_rule_that_finds_a_credential_nothing_is_sent() -> None:
    (one,) = routed(notification(), [IOS], rules=RULES[:-1]).targets
    assert one.settlement == Suppressed(NO_CREDENTIAL)


NAMES = [each.device_id for each in EVERY] + [DeviceId("x"), DeviceId("y")]
QUESTIONS = st.builds(
    notification,
    device_ids=st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
    content=st.sampled_from([Content(title="T"), CALL, TO_ALL]),
)
DEVICES = st.lists(st.sampled_from(EVERY), unique_by=lambda each: each.device_id)
HELD = st.lists(st.sampled_from(list(ALL)), unique=True)


def going(found: Routed) -> set[str]:
    """The addresses that are sent to."""
    return {each.name for each in found.targets if each.settlement is None}


@given(QUESTIONS, DEVICES, HELD)
def test_every_device_and_every_name_is_accounted_for_with_a_reason(
    what: Notification, devices: list[Device], held: list[str]
) -> None:
    found = routed(what, devices, held)
    to = what.content.to
    asked = {*what.device_ids, *(each.device_id for each in devices)} if to is None else {DeviceId(to.label)}
    assert asked == {each.name for each in found.rulings}
    for each in found.rulings:
        assert not isinstance(each.verdict, LeftOut | Suppressed) or each.verdict.reason
    said = {(each.name, each.verdict) for each in found.rulings}
    assert all((each.name, each.settlement or each.credential) in said for each in found.targets)
    names = [each.name for each in found.targets]
    assert len(names) == len(set(names))


@given(QUESTIONS, DEVICES, HELD, st.randoms(use_true_random=False))
def test_who_is_sent_to_does_not_hang_on_the_order_of_those_who_judge(
    what: Notification, devices: list[Device], held: list[str], chance: random.Random
) -> None:
    """Only the reason that is given first does."""
    judging = list(RULES[1:])
    chance.shuffle(judging)
    assert going(routed(what, devices, held, (RULES[0], *judging))) == going(routed(what, devices, held))


@given(QUESTIONS, DEVICES, HELD)
def test_a_rule_asked_twice_says_nothing_new(what: Notification, devices: list[Device], held: list[str]) -> None:
    doubled = [rule for each in RULES for rule in (each, each)]
    assert routed(what, devices, held, doubled) == routed(what, devices, held)


@given(st.lists(st.tuples(QUESTIONS, DEVICES), max_size=4), HELD)
def test_devices_judged_once_for_all_that_are_alike_are_judged_as_each_by_itself(
    asked: list[tuple[Notification, list[Device]]], held: list[str]
) -> None:
    """Workers ask one table for all notifications: what it remembers of one device holds for those like it."""
    table = RoutingTable(CHANNELS, {DEMO: {channel: ALL[channel] for channel in ALL if channel in held}}, RULES)
    for what, devices in asked:
        recipient = Recipient(devices)
        assert list(table.targets(what, recipient, NOW)) == list(table.route(what, recipient, NOW).targets)
