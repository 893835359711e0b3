"""Explain: what would happen, with the senders that would do it, and without doing it."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.contract.clock import StoppedClock
from tests.memory.devices import MemoryDevices
from tests.memory.store import MemoryStore
from tests.memory.templates import MemoryTemplates
from tests.unit.domain.made import CHANNELS
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.dedup import ClaimKind
from waypost.domain.device import Platform, Registration, is_token_alone
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.routing import Deferred, LeftOut, RoutingTable, Rule
from waypost.domain.rules import RULES
from waypost.domain.settlement import Suppressed
from waypost.domain.submission import Defaults, Submission
from waypost.domain.submitted_device import SubmittedAddress
from waypost.domain.time import later
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.explain import Explain
from waypost.pipeline.template_choice import StoredTemplates
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

DEMO, BILLING, USER = AppId("demo"), CallerId("billing"), UserId("user-1")


class OneId:
    """Always the same."""

    def next(self, count: int) -> list[NotificationId]:
        """See Ids."""
        return [NotificationId(bytes(16))] * count


async def explaining(*devices: tuple[str, Platform]) -> Explain:
    """An app with an FCM credential and a user with these devices."""
    clock, registry = StoppedClock(), MemoryDevices(MemoryStore())
    for device_id, platform in devices:
        registration = Registration(DEMO, USER, DeviceId(device_id), platform, token=f"secret-{device_id}")
        await registry.upsert(registration, clock.now(), 10)
    sender = FcmSender(
        CredentialId.of(DEMO, "fcm"), FcmSettings(service_account_file="none"), clock=clock, telemetry=Silent()
    )
    table = RoutingTable(CHANNELS, {DEMO: {Channel("fcm"): (sender.credential,)}}, RULES)
    direct = DirectDevices(registry, {DEMO: {Platform("android"): is_token_alone}})
    defaults = {DEMO: Defaults(dedup_window_s=60)}
    templates = StoredTemplates(MemoryTemplates())
    return Explain(registry, direct, templates, {sender.credential: sender}, table, defaults, clock, OneId())


async def test_each_device_shows_what_it_would_be_sent_or_why_nothing() -> None:
    """The bytes of the sender that would send them, without the token."""
    explain = await explaining(("phone", Platform("android")), ("tablet", Platform("ios")))
    said = await explain.explain(DEMO, BILLING, Submission(user_id=USER, title="Hello"))
    by_device = {target.device_id: target for target in said.targets}
    phone, tablet = by_device[DeviceId("phone")], by_device[DeviceId("tablet")]
    assert phone.rendered is not None
    assert json.loads(phone.rendered.body)["message"]["notification"]["title"] == "Hello"
    assert phone.rendered.size_bytes <= phone.rendered.limit_bytes
    assert b"secret" not in phone.rendered.body
    assert (tablet.channel, tablet.suppressed, tablet.rendered) == (Channel("apns"), "no_credential", None)
    assert said.dedup == (ClaimKind.CONTENT,)


async def test_what_each_rule_said_is_shown_from_the_routing_itself() -> None:
    """Left out, suppressed or put off, with the rule and its reason; what lets an address pass says nothing."""
    explain = await explaining(
        ("phone", Platform("android")), ("tablet", Platform("ios")), ("old", Platform("android"))
    )
    until = later(explain.clock.now(), 60_000)
    quiet = Rule("quiet_hours", lambda _, it: Deferred(until) if it.name == "old" else None)
    table = RoutingTable(CHANNELS, explain.routing.credentials, (*RULES[:-1], quiet, RULES[-1]))
    explain = msgspec.structs.replace(explain, routing=table)
    chosen = (DeviceId("tablet"), DeviceId("old"), DeviceId("lost"))
    said = await explain.explain(DEMO, BILLING, Submission(user_id=USER, title="Hello", device_ids=chosen))
    assert {each.name: (each.rule, each.verdict) for each in said.rulings} == {
        "phone": ("chosen", LeftOut("not_chosen")),
        "tablet": ("credential", Suppressed("no_credential")),
        "old": ("quiet_hours", Deferred(until)),
        "lost": ("active", Suppressed("device_not_found")),
    }
    assert {each.device_id: (each.suppressed, each.rendered) for each in said.targets} == {
        "tablet": ("no_credential", None),
        "old": (None, None),
        "lost": ("device_not_found", None),
    }


async def test_what_is_too_large_for_a_provider_says_so() -> None:
    """With the size and the limit; the submission itself is fine."""
    explain = await explaining(("phone", Platform("android")))
    said = await explain.explain(DEMO, BILLING, Submission(user_id=USER, title="Hello", body="x" * 10_000))
    rendered = said.targets[0].rendered
    assert rendered is not None
    assert rendered.refused is not None
    assert rendered.size_bytes > rendered.limit_bytes


async def test_a_token_that_nobody_has_is_explained_and_not_kept() -> None:
    explain = await explaining()
    device = SubmittedAddress(Platform("android"), "t-1")
    said = await explain.explain(DEMO, BILLING, Submission(device=device, title="Hello"))
    assert [target.rendered is not None for target in said.targets] == [True]
    assert await explain.devices.with_tokens(DEMO, ["t-1"]) == [None]


async def test_an_invalid_submission_is_refused_as_intake_would() -> None:
    """By the same pure function, and by the same checks of the channels."""
    explain = await explaining()
    with pytest.raises(InvalidRequest):
        await explain.explain(DEMO, BILLING, Submission(user_id=USER))
    refusing = Explain(
        explain.devices,
        explain.direct,
        explain.templates,
        explain.senders,
        explain.routing,
        explain.defaults,
        explain.clock,
        explain.ids,
        checks={DEMO: [lambda _content, _kind: [Fault("data", "a reserved key")]]},
    )
    with pytest.raises(InvalidRequest, match="a reserved key"):
        await refusing.explain(DEMO, BILLING, Submission(user_id=USER, title="Hello"))
