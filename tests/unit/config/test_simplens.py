"""The profile of simplens: its variables and its file are settings of ours, beneath our own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shows import shows
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.config.settings import RateSettings
from waypost.domain.channel import Channel
from waypost.domain.content import Urgency
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.retry import POLICIES, ErrorClass
from waypost.features.recovery.settings import RecoverySettings

OURS = """
apps:
  demo:
    fcm: {service_account_file: fcm.json}
    webpush: {vapid_private_key_file: vapid.pem, subject: "mailto:ops@example.com"}
"""
THEIRS = """
providers:
  - package: "@simplens/nodemailer-gmail"
    id: gmail
    credentials: {EMAIL_PASS: "${EMAIL_PASS}"}
    options: {priority: 1, rateLimit: {maxTokens: 7, refillRate: 0.5}}
  - {package: "@example/fcm", id: push, options: {rateLimit: {maxTokens: 500, refillRate: 50}}}
channels:
  email: {default: gmail, fallback: null}
  fcm: {default: push}
"""
DEMO = AppId("demo")
FCM, WEBPUSH = Channel("fcm"), Channel("webpush")


def read(folder: Path, ours: str = OURS, theirs: str | None = THEIRS, **environ: str) -> Config:
    """Load both files with the profile."""
    (folder / "waypost.yaml").write_text(ours)
    if theirs is not None:
        (folder / "simplens.config.yaml").write_text(theirs)
    return load(folder / "waypost.yaml", {"WAYPOST_PROFILE": "simplens", **environ})


@shows("S4-18")
def test_its_defaults_hold_where_nothing_is_said(tmp_path: Path) -> None:
    """Five retries after 1, 2, 4, 8 and 16 s; what waits for a bucket spends one; a bucket for every provider."""
    config = read(tmp_path, theirs=None)
    app = config.apps[DEMO]
    assert app.retry.default is POLICIES["s4_simple"]
    assert app.retry.throttle_counts_as_retry
    assert app.rates == {
        FCM: RateSettings(capacity=100, refill_per_s=10, ramp_s=0),
        WEBPUSH: RateSettings(capacity=100, refill_per_s=10, ramp_s=0),
    }
    assert (config.outbox.poll_s, config.outbox.batch) == (5.0, 500)
    assert (app.on_denied, app.fallback) == ("fail", {})


def test_its_fallback_provider_stands_in_where_we_have_its_section(tmp_path: Path) -> None:
    """Requirements S4-21: with the bucket of its own; a provider that is none of ours is nobody's fallback."""
    smtp = "{host: mail.example, sender: a@mail.example}"
    ours = OURS + f"    email: {smtp}\n    email/ses: {smtp}\n"
    theirs = THEIRS.replace("fallback: null", "fallback: ses")
    app = read(tmp_path, ours, theirs).apps[DEMO]
    assert app.fallback == {"email": ("ses",)}
    assert app.rates["email/ses"] == RateSettings(capacity=100, refill_per_s=10, ramp_s=0)
    assert read(tmp_path, OURS + f"    email: {smtp}\n", theirs).apps[DEMO].fallback == {}


@shows("S4-09", "S4-18")
def test_its_variables_are_settings(tmp_path: Path) -> None:
    """The number of retries, and how the outbox is looked through."""
    config = read(tmp_path, MAX_RETRY_COUNT="3", OUTBOX_POLL_INTERVAL_MS="250", OUTBOX_BATCH_SIZE="20")
    policy = config.apps[DEMO].retry.choose(Urgency.NORMAL, ErrorClass.TRANSIENT)
    assert [policy.delay_ms(n, 1.0) for n in range(policy.max_retries)] == [1_000, 2_000, 4_000]
    assert (config.outbox.poll_s, config.outbox.batch, config.outbox.topics) == (0.25, 20, "channels")


@shows("S4-40", "S4-52")
def test_its_recovery_is_settings(tmp_path: Path) -> None:
    """S4-T3: its defaults are ours; its record in Redis is kept where there is one."""
    assert read(tmp_path).features["recovery"] == RecoverySettings(auto_retry=False)
    said = {
        "RECOVERY_POLL_INTERVAL_MS": "1500",
        "RECOVERY_BATCH_SIZE": "7",
        "PROCESSING_STUCK_THRESHOLD_MS": "2500",
        "PENDING_STUCK_THRESHOLD_MS": "3500",
        "CLEANUP_RESOLVED_ALERTS_RETENTION_MS": "90000",
        "IDEMPOTENCY_TTL_SECONDS": "60",
        "PROCESSING_TTL_SECONDS": "20",
    }
    ours = OURS + 'redis: {url: "redis://127.0.0.1:6379/0"}\n'
    assert read(tmp_path, ours, **said).features["recovery"] == RecoverySettings(
        poll_s=1.5,
        batch=7,
        processing_stuck_s=2.5,
        pending_stuck_s=3.5,
        keep_resolved_s=90,
        record_ttl_s=60,
        lock_ttl_s=20,
        auto_retry=False,
        second_record=True,
    )


def test_a_record_takes_a_redis(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="second_record"):
        read(tmp_path, OURS + "recovery: {second_record: true}\n")


@shows("S4-28")
def test_its_buckets_are_those_of_who_serves_a_channel(tmp_path: Path) -> None:
    """By the name of the provider that the channel has; providers of channels that we have not are passed over."""
    rates = read(tmp_path).apps[DEMO].rates
    assert rates[FCM] == RateSettings(capacity=500, refill_per_s=50, ramp_s=0)
    assert rates[WEBPUSH] == RateSettings(capacity=100, refill_per_s=10, ramp_s=0)


def test_its_file_may_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "theirs.yaml").write_text(THEIRS)
    rates = read(tmp_path, theirs=None, SIMPLENS_CONFIG_PATH="theirs.yaml").apps[DEMO].rates
    assert rates[FCM].capacity == 500
    with pytest.raises(ConfigurationError, match="cannot read"):
        read(tmp_path, theirs=None, SIMPLENS_CONFIG_PATH="nowhere.yaml")


def test_what_our_own_file_says_holds(tmp_path: Path) -> None:
    ours = OURS + (
        "    retry: {default: s2_low, throttle_counts_as_retry: false}\n"
        "    rates: {fcm: {capacity: 1, refill_per_s: 1}}\n"
        "outbox: {batch: 9}\n"
    )
    config = read(tmp_path, ours, MAX_RETRY_COUNT="3", OUTBOX_BATCH_SIZE="20")
    app = config.apps[DEMO]
    assert app.retry.default is POLICIES["s2_low"]
    assert not app.retry.throttle_counts_as_retry
    assert (app.rates[FCM].capacity, config.outbox.batch) == (1, 9)


def test_nothing_of_it_holds_without_the_profile(tmp_path: Path) -> None:
    config = read(tmp_path, WAYPOST_PROFILE="", MAX_RETRY_COUNT="3")
    assert config.apps[DEMO].rates == {}
    assert config.apps[DEMO].retry.default.max_retries == 5


@pytest.mark.parametrize(
    ("environ", "theirs", "named"),
    [
        ({"MAX_RETRY_COUNT": "secret"}, THEIRS, "MAX_RETRY_COUNT"),
        ({"OUTBOX_BATCH_SIZE": "0"}, THEIRS, "OUTBOX_BATCH_SIZE"),
        ({}, "providers: {a: b}", "simplens.config.yaml"),
        ({}, "providers: [{id: fcm, options: {rateLimit: {maxTokens: 0}}}]", "maxTokens"),
        ({"WAYPOST_PROFILE": "simple"}, THEIRS, "profile"),
    ],
)
def test_what_is_wrong_is_named_without_its_value(
    environ: dict[str, str], theirs: str, named: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        read(tmp_path, theirs=theirs, **environ)
    assert "secret" not in str(caught.value)
