"""Access tokens: renewed ahead of time, after a refusal, one request at a time; and what failures mean."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.adapters.senders.bench import SystemClock, accepted, fresh, outcome, outcomes, script, to_android
from waypost.channels.fcm import oauth
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Unreachable
from waypost.domain.time import HOUR_MS, Instant
from waypost.lab import Lab, LabSettings
from waypost.telemetry.sink import Silent

DEMO = AppId("demo")


async def until_taken(lab: Lab, sender: FcmSender) -> list[Outcome]:
    """Send one after another until one is taken; what the others came to."""
    before: list[Outcome] = []
    while not isinstance(got := await outcome(sender, to_android(lab)), Taken):
        before.append(got)
    return before


@pytest.mark.asyncio
async def test_what_is_sent_before_the_first_access_token_waits_for_it(lab: Lab, fcm: FcmSender) -> None:
    await lab.script(script({"where": "oauth", "do": {"latency_ms": 200}}))
    assert all(isinstance(got, Taken) for got in await outcomes(fcm, [to_android(lab) for _ in range(3)]))


@pytest.mark.asyncio
async def test_a_revoked_access_token_is_renewed_once_for_all_and_nothing_fails(lab: Lab, fcm: FcmSender) -> None:
    assert isinstance(await outcome(fcm, to_android(lab)), Taken)
    lab.oauth.revoke_all()
    assert all(isinstance(got, Taken) for got in await outcomes(fcm, [to_android(lab) for _ in range(50)]))
    assert lab.records.counts["oauth"].accepted == 2
    assert len(accepted(lab, "fcm")) == 51


@pytest.mark.asyncio
async def test_an_access_token_that_is_refused_again_is_denied(lab: Lab, fcm: FcmSender) -> None:
    await lab.script(script({"where": "fcm", "do": {"answer": {"status": 401, "reason": "UNAUTHENTICATED"}}}))
    assert isinstance(await outcome(fcm, to_android(lab)), CredentialRejected)
    assert not fcm.health().ok
    await lab.script([])
    assert isinstance(await outcome(fcm, to_android(lab)), Taken)
    assert fcm.health().ok


class TestShortLived:
    """Access tokens of one second."""

    @pytest.fixture
    def lab_settings(self, lab_settings: LabSettings) -> LabSettings:
        """As the others, with tokens of one second."""
        return msgspec.structs.replace(lab_settings, access_token_lifetime_s=1)

    @pytest.mark.asyncio
    async def test_tokens_are_renewed_ahead_of_time_and_no_delivery_notices(
        self, lab: Lab, unstarted: FcmSender, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(oauth, "LEAST_LIFE_S", 0.5)
        await unstarted.start()
        while lab.records.counts["oauth"].accepted < 3:
            assert isinstance(await outcome(unstarted, to_android(lab)), Taken)

    @pytest.mark.asyncio
    async def test_a_token_that_ends_sooner_than_it_is_used_is_renewed_and_no_delivery_notices(
        self, lab: Lab, fcm: FcmSender
    ) -> None:
        """FCM's 401 says so."""
        while lab.records.counts["oauth"].accepted < 2:
            assert isinstance(await outcome(fcm, to_android(lab)), Taken)


@pytest_asyncio.fixture
async def unstarted(fcm_settings: FcmSettings) -> AsyncIterator[FcmSender]:
    """A sender that the test starts itself."""
    sender = FcmSender(CredentialId.of(DEMO, "fcm"), fcm_settings, clock=SystemClock(), telemetry=Silent())
    yield sender
    await sender.stop(1)


@pytest.mark.asyncio
async def test_an_account_that_google_refuses_is_denied_until_it_is_taken_again(lab: Lab, unstarted: FcmSender) -> None:
    fault = {"where": "oauth", "match": {"times": 1}, "do": {"answer": {"status": 400, "reason": "invalid_grant"}}}
    await lab.script(script(fault))
    await unstarted.start()
    before = await until_taken(lab, unstarted)
    assert before
    assert all(isinstance(got, CredentialRejected) and got.code == "invalid_grant" for got in before)
    assert unstarted.health().ok


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    [
        {"answer": {"status": 503, "body": "<html>"}},
        {"answer": {"status": 500, "reason": "internal_failure"}},
        {"answer": {"status": 200, "body": "no json"}},
        {"drop": True},
    ],
)
async def test_a_token_endpoint_that_fails_makes_deliveries_unreachable_and_is_asked_again(
    lab: Lab, unstarted: FcmSender, fault: dict[str, object]
) -> None:
    await lab.script(script({"where": "oauth", "match": {"times": 1}, "do": fault}))
    await unstarted.start()
    before = await until_taken(lab, unstarted)
    assert before
    assert all(isinstance(got, Unreachable) and got.code == "oauth_unavailable" for got in before)


class Late(SystemClock):
    """Two hours behind."""

    def now(self) -> Instant:
        """See Clock."""
        return Instant(super().now() - 2 * HOUR_MS)


@pytest.mark.asyncio
async def test_a_clock_that_is_wrong_is_named_with_how_wrong_it_is(lab: Lab, fcm_settings: FcmSettings) -> None:
    """From the date of the refusal."""
    sender = FcmSender(CredentialId.of(DEMO, "fcm"), fcm_settings, clock=Late(), telemetry=Silent())
    await sender.start()
    got = await outcome(sender, to_android(lab))
    assert isinstance(got, CredentialRejected)
    assert got.code == "invalid_grant"
    assert re.fullmatch(r"this machine's clock is 7\d{3} s behind Google's: set it right", got.why)
    assert sender.health().why == f"invalid_grant: {got.why}"
    await sender.stop(1)


@pytest.mark.asyncio
async def test_times_that_google_does_not_like_are_named_and_nothing_of_its_text_is_kept(
    lab: Lab, unstarted: FcmSender
) -> None:
    text = (
        "Invalid JWT: Token must be a short-lived token (60 minutes). Check your iat and exp values. Robot@example.com"
    )
    body = msgspec.json.encode({"error": "invalid_grant", "error_description": text}).decode()
    await lab.script(script({"where": "oauth", "do": {"answer": {"status": 400, "body": body}}}))
    await unstarted.start()
    why = "the times in the request are not near Google's: is this machine's clock right?"
    assert await outcome(unstarted, to_android(lab)) == CredentialRejected("invalid_grant", why)


class TestMachine:
    """On a machine of Google's: no key file, its metadata server gives tokens."""

    @pytest.fixture
    def fcm_settings(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> FcmSettings:
        """As the configuration makes it of ``service_account_file: metadata``: a path."""
        monkeypatch.setenv("GCE_METADATA_HOST", lab.urls.metadata.removeprefix("http://"))
        directory = lab.settings.directory
        return FcmSettings(
            service_account_file=str(directory / "metadata"), endpoint=lab.urls.fcm, ca_file=str(directory / "ca.pem")
        )

    @pytest.mark.asyncio
    async def test_the_machines_account_sends_for_the_machines_project(self, lab: Lab, fcm: FcmSender) -> None:
        assert isinstance(await outcome(fcm, to_android(lab)), Taken)

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        ("status", "problem"),
        [
            (
                403,
                CredentialRejected("metadata_denied", "the metadata server knows no account of this machine for FCM"),
            ),
            (
                404,
                CredentialRejected("metadata_denied", "the metadata server knows no account of this machine for FCM"),
            ),
            (503, Unreachable("oauth_unavailable", "the metadata server answered 503")),
        ],
    )
    async def test_a_machine_without_an_account_and_one_that_fails_are_told_apart(
        self, lab: Lab, fcm_settings: FcmSettings, status: int, problem: Outcome
    ) -> None:
        """Also in what an operator sees: only the first is the credential's fault."""
        settings = msgspec.structs.replace(fcm_settings, project_id="demo-project")
        await lab.script(script({"where": "metadata", "do": {"answer": {"status": status}}}))
        sender = FcmSender(CredentialId.of(DEMO, "fcm"), settings, clock=SystemClock(), telemetry=Silent())
        await sender.start()
        assert await outcome(sender, to_android(lab)) == problem
        assert sender.health().ok is not isinstance(problem, CredentialRejected)
        await sender.stop(1)

    @pytest.mark.asyncio
    async def test_another_project_may_be_named(self, lab: Lab, fcm_settings: FcmSettings) -> None:
        settings = msgspec.structs.replace(fcm_settings, project_id="another-project")
        sender = FcmSender(CredentialId.of(DEMO, "fcm"), settings, clock=SystemClock(), telemetry=Silent())
        await sender.start()
        got = await outcome(sender, to_android(lab))
        await sender.stop(1)
        assert isinstance(got, CredentialRejected)
        assert got.code == "PERMISSION_DENIED"

    @pytest.mark.asyncio
    async def test_without_a_metadata_server_the_start_names_the_setting(
        self, fcm_settings: FcmSettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
        sender = FcmSender(CredentialId.of(DEMO, "fcm"), fcm_settings, clock=SystemClock(), telemetry=Silent())
        with pytest.raises(ConfigurationError) as caught:
            await sender.start()
        assert caught.value.path == "apps.demo.fcm.service_account_file"
        await sender.stop(1)


@pytest.mark.asyncio
async def test_stopping_reports_what_waits_for_an_access_token(lab: Lab, unstarted: FcmSender) -> None:
    await lab.script(script({"where": "oauth", "do": {"black_hole": {}}}))
    await unstarted.start()
    reported: list[Outcome] = []
    unstarted.send([to_android(lab) for _ in range(3)], lambda _, got: reported.append(got))
    await unstarted.stop(0.2)
    assert len(reported) == 3
    assert all(isinstance(got, Unreachable) for got in reported)


@pytest.mark.asyncio
async def test_a_malformed_token_is_forgotten_and_a_malformed_message_is_not(lab: Lab, fcm: FcmSender) -> None:
    assert isinstance(await outcome(fcm, to_android(lab, token="no token")), Gone)
    broken = fresh(Content(title="x", overrides={Channel("fcm"): {"android": {"ttl": "soon"}}}))
    assert isinstance(await outcome(fcm, to_android(lab, broken)), Refused)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "content",
    [None, b"no json", b"{}", b'{"project_id":"p","client_email":"e","private_key":"x"}'],
    ids=["missing", "no json", "incomplete", "no key"],
)
async def test_an_account_file_that_cannot_be_used_names_its_setting(
    fcm_settings: FcmSettings, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "account.json"
    if content is not None:
        file.write_bytes(content)
    settings = msgspec.structs.replace(fcm_settings, service_account_file=str(file))
    sender = FcmSender(CredentialId.of(DEMO, "fcm"), settings, clock=SystemClock(), telemetry=Silent())
    with pytest.raises(ConfigurationError) as caught:
        await sender.start()
    assert caught.value.path == "apps.demo.fcm.service_account_file"
    await sender.stop(1)
