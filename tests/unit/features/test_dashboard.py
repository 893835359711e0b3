"""The dashboard's figures, words, and who is let in without a login."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from waypost.bootstrap.features import sections
from waypost.bootstrap.registry import installed, load
from waypost.config import AppSettings, Config
from waypost.config.reference import markdown
from waypost.domain.ids import AppId
from waypost.entrypoints.rest.settings import RestSettings
from waypost.features.dashboard.admittance import is_cross_site, is_from_here, is_served
from waypost.features.dashboard.figures import Samples, parse, quantile
from waypost.features.dashboard.pages.settings import settings_of
from waypost.features.dashboard.rendering import STATIC, amount, moment, render, seconds, status
from waypost.features.dashboard.settings import DashboardSettings
from waypost.runtime.listening import Listen
from waypost.stores.sql.settings import SqlSettings
from waypost.telemetry import Metric

BEFORE = """\
# TYPE waypost_accepted_total counter
waypost_accepted_total{app="demo",lane="high"} 10.0
waypost_accepted_total{app="demo",lane="low"} 5.0
waypost_accepted_total{app="other",lane="low"} 99.0
waypost_delivery_seconds_bucket{lane="low",le="0.1"} 100.0
waypost_delivery_seconds_bucket{lane="low",le="1.0"} 100.0
waypost_delivery_seconds_bucket{lane="low",le="+Inf"} 100.0
"""
AFTER = """\
waypost_accepted_total{app="demo",lane="high"} 70.0
waypost_accepted_total{app="demo",lane="low"} 5.0
waypost_delivery_seconds_bucket{lane="low",le="0.1"} 100.0
waypost_delivery_seconds_bucket{lane="low",le="1.0"} 200.0
waypost_delivery_seconds_bucket{lane="low",le="+Inf"} 200.0
"""


def test_rates_are_those_of_the_last_minute_of_one_app() -> None:
    samples = Samples()
    samples.add(parse(BEFORE, 100.0))
    assert samples.rate(Metric.ACCEPTED, app="demo") is None
    samples.add(parse(AFTER, 130.0))
    assert samples.rate(Metric.ACCEPTED, app="demo") == 2.0
    assert samples.rate(Metric.ACCEPTED, app="demo", lane="low") == 0.0
    assert samples.rate(Metric.ACCEPTED, app="other") == 0.0, "a restart is not less than nothing"
    assert samples.series(Metric.ACCEPTED, app="demo") == [(130.0, 2.0)]
    samples.add(parse(AFTER, 191.0))
    assert samples.rate(Metric.ACCEPTED, app="demo") is None, "what is older than a minute does not count"


def test_quantiles_are_those_of_what_came_lately() -> None:
    samples = Samples()
    samples.add(parse(BEFORE, 100.0))
    assert samples.quantile(0.5, Metric.DELIVERY_SECONDS) == pytest.approx(0.05)
    samples.add(parse(AFTER, 130.0))
    assert samples.quantile(0.5, Metric.DELIVERY_SECONDS) == pytest.approx(0.55)
    assert quantile({}, 0.5) is None
    assert quantile({1.0: 0.0, float("inf"): 4.0}, 0.5) == 1.0, "beyond the last bound nothing is known"


def test_numbers_and_times_read_well() -> None:
    assert [amount(each) for each in (None, 0, 0.25, 7.0, 12_345, 1_234.6)] == [
        "–", "0", "0.2", "7", "12\u202f345", "1\u202f235",
    ]  # fmt: skip
    assert [seconds(each) for each in (0.08, 1.44, 59, 720, 7_300, 200_000)] == [
        "80\u202fms", "1.4\u202fs", "59\u202fs", "12\u202fmin", "2\u202fh", "2\u202fd",
    ]  # fmt: skip
    assert '>2026-01-31 08:00:00 <span class="zone">UTC</span><' in moment("2026-01-31T09:00:00.000+01:00")
    assert "–" in moment(None) and 'class="badge bad">failed<' in status("failed")


def test_what_is_shown_is_escaped_in_every_template() -> None:
    said = {"title": "<b>", "detail": "<script>alert(1)</script>", "faults": []}
    page = render("problem.html", {"problem": said, "home": "/dashboard"})
    assert "<script>" not in page and "&lt;script&gt;" in page and "<b>" not in page


@pytest.mark.parametrize(
    ("host", "public", "enabled", "served"),
    [
        ("127.0.0.1", None, True, True),
        ("::1", None, True, True),
        ("localhost", "http://localhost:8080", True, True),
        ("127.0.0.1", None, False, False),
        ("127.0.0.1", "https://push.example.com", True, False),
        ("192.0.2.7", None, True, False),
        ("push.example.com", None, True, False),
    ],
)
def test_without_a_login_it_is_served_on_the_loopback_alone(
    host: str, public: str | None, enabled: bool, served: bool
) -> None:
    apps, rest = {AppId("demo"): AppSettings()}, RestSettings(public_url=public)
    config = Config(apps=apps, listen=Listen(host, 8080), rest=rest)
    assert is_served(config, DashboardSettings(enabled=enabled)) is served


@pytest.mark.parametrize(
    ("host", "peer", "header", "here"),
    [
        ("localhost:8080", "127.0.0.1", "accept", True),
        ("localhost", "127.0.0.1", "x-forwarded-proto", False),
        ("[localhost", "127.0.0.1", "accept", False),
        ("[::1]:8080", "::1", "accept", True),
        ("127.0.0.1", "127.0.0.1", "x-real-ip", False),
        ("rebound.example", "127.0.0.1", "accept", False),
        ("localhost", "192.0.2.1", "accept", False),
        ("", "127.0.0.1", "accept", False),
    ],
)
def test_who_is_at_this_machine(host: str, peer: str, header: str, here: bool) -> None:
    assert is_from_here("1.1", host, peer, [header]) is here


def test_a_proxy_that_says_nothing_is_known_by_the_http_that_no_browser_speaks() -> None:
    """nginx with a ``proxy_pass`` and nothing else: no field of its own, and the name of what it passes on to."""
    assert not is_from_here("1.0", "127.0.0.1:8080", "127.0.0.1", ["host", "connection"])


def test_what_another_site_makes_a_browser_send() -> None:
    host = {"host": "localhost:8080"}
    assert not is_cross_site("POST", host | {"origin": "http://localhost:8080", "sec-fetch-site": "same-origin"})
    assert is_cross_site("POST", host | {"origin": "http://localhost:9000"})
    assert is_cross_site("POST", host | {"origin": "null"})
    assert is_cross_site("POST", host | {"origin": "http://["})
    assert is_cross_site("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"})
    assert not is_cross_site("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})
    assert is_cross_site("POST", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})


def test_settings_are_told_with_their_source_and_without_secrets() -> None:
    secret = "s3cret"
    sms = {"auth_token": secret, "account_sid": secret, "endpoint": f"https://u:{secret}@sms.example/v1?key={secret}"}
    apps = {AppId("demo"): AppSettings()}
    config = Config(
        apps=apps,
        listen=Listen("::1", 9),
        store=SqlSettings(url=f"postgresql://waypost:{secret}@db.example/waypost"),
        features={"dashboard": DashboardSettings(enabled=False), "twilio": sms},
    )
    told = {each.path: each for each in settings_of(config, {"WAYPOST_LISTEN": "[::1]:9"})}
    assert secret not in str(told)
    assert (told["listen"].value, told["listen"].source) == ("[::1]:9", "environment")
    assert (told["store.url"].value, told["store.url"].source) == ("postgresql://db.example/waypost", "file")
    assert (told["dashboard.enabled"].value, told["dashboard.enabled"].source) == ("false", "file")
    assert told["rest.body_limit_bytes"].source == "default"


def test_settings_are_named_as_the_file_has_them(tmp_path: Path) -> None:
    """By the keys of the reference, and of the environment's variables: the code keeps some of them in one place."""
    file = tmp_path / "waypost.yaml"
    file.write_text(
        "apps: {demo: {apns: {topic: x}, apns/two: {topic: y}, inapp: {badge: true}, defaults: {ttl_s: 60},"
        " types: {sale: {ttl_s: 9}}, retry: {default: {max_retries: 3}}, limits: {callers: {shop: 5/1s}}}}\n"
        "archive: {to: /var/lib/archive}\n"
    )
    told = {each.path: each for each in settings_of(load(file, {}), {"WAYPOST_APPS__DEMO__APNS__TOPIC": "x"})}
    assert (told["apps.demo.apns.topic"].value, told["apps.demo.apns.topic"].source) == ("x", "environment")
    assert told["apps.demo.apns/two.topic"].value == "y"
    keys = re.findall(r"^\| `([^`]+)` \|", markdown(installed(), sections()), re.MULTILINE)
    known = [re.compile(re.sub("<[^>]*>", "[^.]+", key.replace(".", r"\."))) for key in keys]
    whole = {key.partition(".")[0] for key in keys} | {key.rpartition(".")[0] for key in keys}
    paths = [path.replace("/two", "") for path in told]
    strange = [path for path in paths if path not in whole and not any(each.match(path) for each in known)]
    assert [path for path in strange if not path.endswith(".cap")] == [], "a cap that is not set has no keys"


def test_the_path_of_a_file_is_shown_whole() -> None:
    config = Config(apps={}, store=SqlSettings(url="sqlite:////var/lib/waypost/waypost.db"))
    told = {each.path: each.value for each in settings_of(config, {})}
    assert told["store.url"] == "sqlite:////var/lib/waypost/waypost.db"


def test_what_others_wrote_is_as_it_was_published() -> None:
    told = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", (STATIC / "VENDORED.md").read_text(), re.MULTILINE))
    assert set(told) == {"uplot.js", "uplot.css"}
    assert {name: sha256((STATIC / name).read_bytes()).hexdigest() for name in told} == told
