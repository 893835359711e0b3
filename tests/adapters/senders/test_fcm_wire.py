"""How FCM's connections live, who gets their streams, and what never goes on the wire."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.adapters.senders.bench import (
    SystemClock,
    accepted,
    fresh,
    outcome,
    outcomes,
    payload_of,
    script,
    to_android,
)
from tests.shows import shows
from waypost.channels.fcm import wire
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.push import patience
from waypost.domain.content import Content, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import AppId
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Unanswered
from waypost.lab import Lab, LabSettings
from waypost.telemetry.events import Event
from waypost.telemetry.sink import Silent


class Seen(Silent):
    """Keeps events, and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []
        self._more = asyncio.Event()

    def event(self, event: Event, /, **fields: object) -> None:
        """Keep it."""
        self.events.append((event, fields))
        self._more.set()

    def told(self, event: Event) -> list[dict[str, object]]:
        """What was told with each of a kind."""
        return [fields for each, fields in self.events if each is event]

    async def until(self, event: Event, times: int = 1) -> None:
        """Wait until it has happened so often."""
        async with asyncio.timeout(60):
            while len(self.told(event)) < times:
                self._more.clear()
                await self._more.wait()


async def started(settings: FcmSettings, seen: Seen) -> FcmSender:
    """A sender that tells *seen*."""
    sender = FcmSender(CredentialId.of(AppId("demo"), "fcm"), settings, clock=SystemClock(), telemetry=seen)
    await sender.start()
    return sender


class TestLife:
    """A lab whose FCM ends connections after a second and a half of silence, or of three."""

    @pytest.fixture
    def lab_settings(self, lab_settings: LabSettings) -> LabSettings:
        """As the others, but impatient."""
        return msgspec.structs.replace(lab_settings, fcm_idle_s=1.5, fcm_max_age_s=3.0)

    @pytest.mark.asyncio
    async def test_an_idle_connection_is_closed_before_fcm_says_goaway(
        self, fcm_settings: FcmSettings, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(wire, "IDLE_S", 0.5)
        seen = Seen()
        sender = await started(fcm_settings, seen)
        assert isinstance(await outcome(sender, to_android(lab)), Taken)
        await seen.until(Event.CONNECTION_CLOSED, 3)
        assert isinstance(await outcome(sender, to_android(lab)), Taken)
        await sender.stop(1)
        assert {fields["why"] for fields in seen.told(Event.CONNECTION_CLOSED)[:3]} == {"idle for 0.5 s"}
        assert not seen.told(Event.CONNECTION_GOAWAY)

    @pytest.mark.asyncio
    async def test_a_connection_in_use_is_replaced_before_it_is_too_old_and_nothing_is_lost(
        self, fcm_settings: FcmSettings, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(wire, "MAX_AGE_S", 1.0)
        seen = Seen()
        sender = await started(fcm_settings, seen)
        sent = 0
        while len(seen.told(Event.CONNECTION_CLOSED)) < 3:
            assert isinstance(await outcome(sender, to_android(lab)), Taken)
            sent += 1
        await sender.stop(1)
        assert {fields["why"] for fields in seen.told(Event.CONNECTION_CLOSED)[:3]} == {"reached its maximum age"}
        assert not seen.told(Event.CONNECTION_GOAWAY)
        assert len(accepted(lab, "fcm")) == sent

    @pytest.mark.asyncio
    async def test_the_lab_would_have_said_goaway(self, fcm_settings: FcmSettings, lab: Lab) -> None:
        """The two tests above show something: with the real times the same lab ends the connection."""
        seen = Seen()
        sender = await started(fcm_settings, seen)
        assert isinstance(await outcome(sender, to_android(lab)), Taken)
        await seen.until(Event.CONNECTION_GOAWAY)
        assert isinstance(await outcome(sender, to_android(lab)), Taken)
        await sender.stop(1)


def test_the_times_are_below_those_that_fcm_was_seen_to_have() -> None:
    assert wire.IDLE_S < 4 * 60
    assert wire.MAX_AGE_S == 59 * 60
    assert wire.STREAMS == 100
    assert patience.ANSWER_BY_S < 2 * wire.PING_AFTER_SILENCE_S, "FCM bears 2 PINGs without a request between"


@pytest.mark.asyncio
async def test_a_request_without_an_answer_costs_no_goaway_for_too_many_pings(
    fcm_settings: FcmSettings, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real times, ten times faster: 2 s to answer, a PING after 1.1 s of silence. The second is the last there."""
    monkeypatch.setattr(patience, "EXPECTED_S", patience.EXPECTED_S / 10)
    monkeypatch.setattr(patience, "ANSWER_BY_S", patience.ANSWER_BY_S / 10)
    monkeypatch.setattr(wire, "PING_AFTER_SILENCE_S", wire.PING_AFTER_SILENCE_S / 10)
    seen = Seen()
    sender = await started(fcm_settings, seen)
    assert isinstance(await outcome(sender, to_android(lab)), Taken)
    await lab.script(script({"where": "fcm", "match": {"times": 2}, "do": {"black_hole": {}}}))
    for _ in range(2):
        assert isinstance(await outcome(sender, to_android(lab)), Unanswered)
    assert isinstance(await outcome(sender, to_android(lab)), Taken)
    await sender.stop(1)
    assert not seen.told(Event.CONNECTION_GOAWAY)
    assert lab.records.counts["fcm"].connections_opened == 2


@pytest.mark.asyncio
async def test_no_connection_carries_more_than_100_requests_at_once(lab: Lab, fcm: FcmSender) -> None:
    await lab.script(script({"where": "fcm", "do": {"latency_ms": 50}}))
    assert all(isinstance(got, Taken) for got in await outcomes(fcm, [to_android(lab) for _ in range(450)]))
    connections = lab.records.connections.values()
    peaks = [connection.peak_streams for connection in connections if connection.gateway == "fcm"]
    assert max(peaks) <= 100
    assert not lab.records.counts["fcm"].violations


@pytest.mark.asyncio
async def test_critical_and_high_go_before_what_waits_already(fcm_settings: FcmSettings, lab: Lab) -> None:
    """One connection with 100 streams, 400 messages wait for one, and then come the urgent ones.

    The first of them opens the connection in reserve, and waits for that; the other has the first stream that is free.
    """
    sender = await started(msgspec.structs.replace(fcm_settings, connections=1), Seen())
    assert isinstance(await outcome(sender, to_android(lab)), Taken)
    await lab.script(script({"where": "fcm", "do": {"latency_ms": 250}}))
    waiting = [to_android(lab) for _ in range(499)]
    urgent = [to_android(lab, fresh(urgency=urgency)) for urgency in (Urgency.CRITICAL, Urgency.HIGH)]
    ended: list[Delivery] = []
    done = asyncio.Event()

    def report(one: Delivery, got: Outcome) -> None:
        assert isinstance(got, Taken)
        ended.append(one)
        if len(ended) == 501:
            done.set()

    sender.send(waiting, report)
    sender.send(urgent, report)
    async with asyncio.timeout(60):
        await done.wait()
    await sender.stop(1)
    by_reserve, by_room = [ended.index(one) for one in urgent]
    assert by_room < 250, "only those that were on the wire already were before it"
    assert by_reserve < 400, "it went before the last of those that wait, however long the reserve took to open"


@pytest.mark.asyncio
async def test_urgent_messages_do_not_wait_behind_a_group_that_was_handed_over(
    fcm_settings: FcmSettings, lab: Lab
) -> None:
    """The only connection answers nothing; 500 were handed over to it and wait in its queue."""
    sender = await started(msgspec.structs.replace(fcm_settings, connections=1), Seen())
    assert isinstance(await outcome(sender, to_android(lab)), Taken)
    blocked = {"where": "fcm", "match": {"times": 100}, "do": {"black_hole": {}}}
    await lab.script(script(blocked))
    sender.send([to_android(lab) for _ in range(700)], lambda *_: None)
    assert isinstance(await outcome(sender, to_android(lab, fresh(urgency=Urgency.CRITICAL))), Taken)
    await sender.stop(0)


@shows("S1-86")
@pytest.mark.asyncio
async def test_each_message_of_a_group_that_failed_has_its_own_error(lab: Lab, fcm: FcmSender) -> None:
    """Requirements S1-86: 500 failed are 500 outcomes, and one dead token among them is no error of the others."""
    dead, broken = to_android(lab), to_android(lab, token="no token")
    lab.tokens.deaths[dead.device.token] = 1
    got = await outcomes(fcm, [dead, broken, *(to_android(lab) for _ in range(498))])
    assert isinstance(got[0], Gone)
    assert isinstance(got[1], Gone)
    assert (got[0].code, got[1].code) == ("UNREGISTERED", "INVALID_ARGUMENT")
    assert all(isinstance(one, Taken) for one in got[2:])
    await lab.script(script({"where": "fcm", "do": {"answer": {"status": 503, "reason": "UNAVAILABLE"}}}))
    failed = await outcomes(fcm, [to_android(lab) for _ in range(500)])
    assert [type(one) for one in failed] == [Unanswered] * 500


@pytest.mark.asyncio
async def test_a_message_that_may_be_shortened_is_and_arrives(fcm_settings: FcmSettings, lab: Lab) -> None:
    sender = await started(msgspec.structs.replace(fcm_settings, fit="trim"), Seen())
    long = fresh(Content(title="Title", body="ä👨‍👩‍👧‍👦" * 400, data={"order": 7}))
    one = to_android(lab, long)
    shown = sender.render(one)
    assert shown.refused is None
    assert 4050 < shown.size_bytes <= 4096
    assert isinstance(await outcome(sender, one), Taken)
    too_much_data = to_android(lab, fresh(Content(title="Title", body="Body", data={"order": "x" * 5000})))
    size = sender.render(too_much_data).size_bytes
    assert await outcome(sender, too_much_data) == Refused("payload_too_large", f"{size} bytes, limit 4096")
    await sender.stop(1)
    (record,) = accepted(lab, "fcm")
    message = payload_of(lab, record)["message"]
    assert message["notification"]["title"] == "Title"
    assert message["notification"]["body"].endswith("…")
    assert message["data"]["order"] == "7"


@pytest.mark.asyncio
async def test_an_installation_id_is_sent_as_fid(lab: Lab, fcm: FcmSender) -> None:
    (fid,) = lab.tokens.make("fid", 1, topic=None, environment=None)
    one = to_android(lab, token=f"fid:{fid}")
    assert isinstance(await outcome(fcm, one), Taken)
    (record,) = accepted(lab, "fcm")
    message = payload_of(lab, record)["message"]
    assert message["fid"] == fid
    assert "token" not in message
    lab.tokens.deaths[fid] = 1
    assert isinstance(await outcome(fcm, one), Gone)


@pytest.mark.asyncio
async def test_a_dry_run_is_checked_and_delivers_nothing(fcm_settings: FcmSettings, lab: Lab) -> None:
    sender = await started(msgspec.structs.replace(fcm_settings, validate_only=True), Seen())
    got = await outcome(sender, to_android(lab))
    assert got == Taken("projects/lab-project/messages/fake_message_id")
    assert isinstance(await outcome(sender, to_android(lab, token="no token")), Gone)
    await sender.stop(1)
    assert not accepted(lab, "fcm")
