"""What the configuration takes, overrides and refuses."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from tests.shows import shows
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.config.settings import MAX_WORKERS
from waypost.domain.channel import Channel
from waypost.domain.content import Urgency
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.retry import POLICIES, ErrorClass
from waypost.runtime.listening import Listen
from waypost.runtime.roles import Role

EXAMPLE = """
store: sqlite:///waypost.db
listen: 127.0.0.1:8080
apps:
  demo:
    apns:    {key_file: AuthKey.p8, key_id: ABCDE12345, team_id: FGHIJ67890, topic: com.example.demo, environment: production,
              endpoint: "https://127.0.0.1:2197", ca_file: ca.pem}
    fcm:     {service_account_file: fcm.json, endpoint: "https://127.0.0.1:2198", ca_file: ca.pem}
    webpush: {vapid_private_key_file: vapid.pem, subject: "mailto:ops@example.com", allow_endpoints: ["https://127.0.0.1:2199"], ca_file: ca.pem}
"""  # noqa: E501 - as an operator would write it
DEMO = AppId("demo")

CHANNELS = "apns, email, fcm, inapp, sms, unifiedpush, webhook, webpush"


def read(folder: Path, text: str, **environ: str) -> Config:
    """Load *text* as a file in *folder*."""
    path = folder / "waypost.yaml"
    path.write_text(text)
    return load(path, environ)


def refusal(folder: Path, text: str, **environ: str) -> ConfigurationError:
    """The error that *text* leads to."""
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text, **environ)
    return caught.value


REDIS = "redis: {url: 'redis://127.0.0.1', stream: jobs}"
KAFKA = "kafka: {bootstrap: '127.0.0.1:9092', topic: jobs}"


def test_the_example_of_the_docs_is_read_and_files_are_found_beside_it(tmp_path: Path) -> None:
    config = read(tmp_path, EXAMPLE)
    demo = config.apps[DEMO]
    assert demo.senders[Channel("apns")].key_file is not None
    assert Path(demo.senders[Channel("apns")].key_file) == tmp_path / "AuthKey.p8"
    assert Path(demo.senders[Channel("fcm")].service_account_file) == tmp_path / "fcm.json"
    assert demo.senders[Channel("webpush")].allow_endpoints == ("https://127.0.0.1:2199",)
    assert config.store.url == f"sqlite:///{tmp_path}/waypost.db"
    assert config.listen == Listen("127.0.0.1", 8080)


@shows("S1-18", "S1-21", "S1-139")
def test_what_is_left_out_has_the_documented_default(tmp_path: Path) -> None:
    config = read(tmp_path, "apps: {demo: {}}")
    assert config.apps[DEMO].device_cap == 10
    assert config.apps[DEMO].defaults.ttl_s == 86_400
    assert config.apps[DEMO].retry.default is POLICIES["s1_exponential"]
    assert config.drain_timeout_s == 20
    assert config.limits.backlog == 1_000_000
    assert config.retention.notifications_days == 90
    assert 1 <= config.workers <= MAX_WORKERS
    assert config.lane(Lane.BULK).in_flight is None


def test_an_empty_key_means_its_default(tmp_path: Path) -> None:
    config = read(tmp_path, "apps:\n  demo:\n    device_cap:\nlisten:\n")
    assert config.apps[DEMO].device_cap == 10
    assert config.listen.port == 8080


def test_the_store_may_be_a_url_or_its_settings(tmp_path: Path) -> None:
    whole = read(tmp_path, "apps: {demo: {}}\nstore: {url: 'sqlite:////data/w.db', durability: process}")
    assert (whole.store.url, whole.store.durability) == ("sqlite:////data/w.db", "process")
    part = read(tmp_path, "apps: {demo: {}}\nstore: {durability: process}")
    assert part.store.url == f"sqlite:///{tmp_path}/waypost.db"


def test_policies_are_chosen_by_name_or_written_out(tmp_path: Path) -> None:
    text = """
apps:
  demo:
    retry:
      default: s2_default
      by_urgency: {low: s2_low}
      by_class: {gateway_down: {max_retries: 2, delays_ms: [100, 200]}}
"""
    rules = read(tmp_path, text).apps[DEMO].retry
    assert rules.choose(Urgency.LOW, ErrorClass.TRANSIENT) is POLICIES["s2_low"]
    assert rules.choose(Urgency.HIGH, ErrorClass.TRANSIENT) is POLICIES["s2_default"]
    written = rules.choose(Urgency.LOW, ErrorClass.GATEWAY_DOWN)
    assert (written.max_retries, written.delays_ms) == (2, (100, 200))
    assert written.name == "apps.demo.retry.by_class.gateway_down"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        EXAMPLE + "  my-shop.eu: {}\n",
        WAYPOST_STORE="sqlite:////elsewhere.db",
        WAYPOST_STORE__DURABILITY="process",
        WAYPOST_LISTEN="[::1]:0",
        WAYPOST_WORKERS="3",
        WAYPOST_APPS__DEMO__FCM__ENDPOINT="https://127.0.0.1:9",
        WAYPOST_APPS__DEMO__WEBPUSH__ALLOW_ENDPOINTS="[https://a, https://b]",
        WAYPOST_APPS__MY_SHOP_EU__DEVICE_CAP="5",
        WAYPOST_APPS__DEMO__RETRY__BY_URGENCY="{low: s2_low}",
        WAYPOST_LANES__LOW__IN_FLIGHT="7",
        WAYPOST_DRAIN_TIMEOUT_S="",
    )
    demo = config.apps[DEMO]
    assert demo.senders[Channel("fcm")].endpoint == "https://127.0.0.1:9"
    assert demo.senders[Channel("webpush")].allow_endpoints == ("https://a", "https://b")
    assert demo.retry.by_urgency[Urgency.LOW].name == "s2_low"
    assert config.apps[AppId("my-shop.eu")].device_cap == 5
    assert config.store.url == "sqlite:////elsewhere.db"
    assert config.store.durability == "process"
    assert config.listen == Listen("::1", 0)
    assert config.workers == 3
    assert config.lane(Lane.LOW).in_flight == 7
    assert config.drain_timeout_s == 20


def test_the_environment_alone_is_enough() -> None:
    config = load(None, {"WAYPOST_APPS": "{demo: {}}"})
    assert list(config.apps) == ["demo"]
    assert config.store.url == f"sqlite:///{Path.cwd()}/waypost.db"


def test_variables_that_mean_something_else_are_left_alone(tmp_path: Path) -> None:
    """A container platform adds such names for a service called waypost."""
    read(tmp_path, EXAMPLE, WAYPOST_PORT="tcp://10.0.0.1:80", WAYPOST_SERVICE_HOST="10.0.0.1", WAYPOST_URL="http://x")


def test_secrets_come_from_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / "team").write_text("FGHIJ67890\n")
    text = EXAMPLE.replace("ABCDE12345", '"${KEY_ID}"').replace("FGHIJ67890", "file:team")
    demo = read(tmp_path, text, KEY_ID="KKKKK12345").apps[DEMO]
    assert (demo.senders[Channel("apns")].key_id, demo.senders[Channel("apns")].team_id) == ("KKKKK12345", "FGHIJ67890")


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("apps: {demo: {apns: {key_fil: x}}}", "apps.demo.apns.key_fil", "did you mean 'key_file'?"),
        ("apps: {demo: {}}\nlisen: x", "lisen", "did you mean 'listen'?"),
        ("apps: {demo: {zzz: 1}}", "apps.demo.zzz", f"known here: {CHANNELS}"),
        ("apps: {demo: {fcm: {}}}", "apps.demo.fcm.service_account_file", "is required"),
        ("apps: {demo: {fcm: yes}}", "apps.demo.fcm", "expected a mapping of keys, got true or false"),
        ("apps: {demo: {device_cap: 51}}", "apps.demo.device_cap", "<= 50"),
        ("apps: {demo: {device_cap: '9'}}", "apps.demo.device_cap", "expected `int`, got `str`"),
        ("apps: {demo: {retry: {default: s1_exponentia}}}", "apps.demo.retry.default", "mean 's1_exponential'?"),
        ("apps: {demo: {retry: {by_urgency: {urgent: s2_low}}}}", "apps.demo.retry.by_urgency.urgent", "invalid enum"),
        ("apps: {demo: {retry: {default: {max_retries: -1}}}}", "apps.demo.retry.default.max_retries", ">= 0"),
        (
            "apps: {demo: {retry: {default: {max_retries: 2, delays_ms: [1, -1]}}}}",
            "apps.demo.retry.default.delays_ms[1]",
            ">= 0",
        ),
        ("apps: {demo: {}}\nlisten: localhost", "listen", "expected host:port"),
        ("apps: {demo: {}}\nlisten: '::1:80'", "listen", "expected host:port"),
        ("apps: {demo: {}}\nlisten: 'x:99999'", "listen", "0 (any) to 65535"),
        ("apps: {demo: {}}\nworkers: 65", "workers", "<= 64"),
        ("apps: {demo: {}}\nlog: {level: loud}", "log.level", "invalid enum value"),
        ("apps: {demo: {apns: {team_id: 123}}}", "apps.demo.apns.topic", "is required"),
        ("apps: {.demo: {}}", "apps..demo", "an id has"),
        ("apps: {}", "apps", "name at least one app"),
        ("", "apps", "is required"),
        ("- a", "", "expected a mapping of keys"),
        ("apps: {demo: {}, demo: {}}", "", "line 1: 'demo' twice"),
        ("apps: {1: {}}", "", "a key is text"),
        ("apps: {demo: {}\nsecret: abc", "", "line 2"),
        ("apps: {demo: {}}\x01", "", "a character that YAML does not allow"),
        ("apps: {demo: {}}\0", "", "a character that YAML does not allow"),
        ("apps: {demo: {device_cap: '${NOT_SET}'}}", "apps.demo.device_cap", "variable NOT_SET is not set"),
        ("apps: {demo: {}}\nsources: {a: {app: demo}}", "sources.a", "is either"),
        (f"apps: {{demo: {{}}}}\nsources: {{a: {{app: demo, {REDIS}, {KAFKA}}}}}", "sources.a", "is either"),
        (f"apps: {{demo: {{}}}}\nsources: {{a: {{app: dome, {REDIS}}}}}", "sources.a.app", "known here: demo"),
        (f"apps: {{demo: {{}}}}\nsources: {{a: {{{KAFKA}}}}}", "sources.a.app", "is required"),
        ("apps: {demo: {}}\nsources: {a: {app: demo, redis: {url: x}}}", "sources.a.redis.stream", "is required"),
        (
            "apps: {demo: {}}\nsources: {a: {app: demo, redis: {url: x, stream: s, dead_letters: s}}}",
            "sources.a",
            "again and again",
        ),
        ("apps: {demo: {}}\nstore: file:absent", "store", "cannot read the file it refers to"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_the_path_of_its_key(tmp_path: Path, text: str, path: str, why: str) -> None:
    error = refusal(tmp_path, text)
    assert error.path == path
    assert why in str(error)


def test_a_number_without_quotes_is_refused_where_text_is_meant(tmp_path: Path) -> None:
    """YAML would have dropped a leading zero."""
    error = refusal(tmp_path, EXAMPLE.replace("FGHIJ67890", "1234567890"))
    assert (error.path, "put it in quotes" in str(error)) == ("apps.demo.apns.team_id", True)


def test_a_refused_value_is_not_repeated(tmp_path: Path) -> None:
    for text in (
        "apps: {demo: {}}\nstore: {url: {hunter2: 1}}",
        "apps: {demo: {}}\nlisten: hunter2",
        "apps: {demo: {}}\nstore: {url: hunter2\n",
    ):
        assert "hunter2" not in str(refusal(tmp_path, text))


def test_a_variable_that_goes_into_a_single_value_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, EXAMPLE, WAYPOST_LISTEN__PORT="1")
    assert "WAYPOST_LISTEN__PORT" in str(error)
    error = refusal(tmp_path, EXAMPLE, WAYPOST_APPS__DEMO__FMC__ENDPOINT="https://x")
    assert (error.path, "did you mean 'fcm'" in str(error)) == ("apps.demo.fmc", True)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load(tmp_path / "absent.yaml", {})


@pytest.mark.parametrize("text", ["127.0.0.1:0", "[::1]:8080", "waypost.internal:65535"])
def test_an_address_reads_back_as_it_was_written(text: str) -> None:
    assert str(Listen.parse(text)) == text


LOG = "apps: {demo: {}}\nstack: log\nkafka: {bootstrap: '127.0.0.1:9092'}\n"
POSTGRES = "apps: {demo: {}}\nstore: postgresql://localhost/w\n"
PUBLISHED = f"{POSTGRES}redis: {{url: 'redis://localhost'}}\noutbox: {{to: redis}}\n"


def test_a_process_has_the_roles_that_are_listed_or_all_of_its_stack(tmp_path: Path) -> None:
    apart = {Role.ROUTER, Role.DELIVERER}
    assert read(tmp_path, "apps: {demo: {}}").does() == set(Role) - {Role.RECORDER, Role.RELAY} - apart
    assert read(tmp_path, LOG).does() == set(Role) - {Role.RELAY} - apart
    assert read(tmp_path, PUBLISHED).does() == set(Role) - {Role.RECORDER} - apart
    assert read(tmp_path, f"{POSTGRES}\nhandoff: queue").does() == set(Role) - {Role.RECORDER, Role.RELAY, Role.WORKER}
    assert read(tmp_path, "apps: {demo: {}}\nroles: [api, sweep]").does() == {Role.API, Role.SWEEP}
    assert read(tmp_path, LOG, WAYPOST_ROLES="[recorder]").does() == {Role.RECORDER}


def test_a_role_that_the_stack_does_not_have_is_refused(tmp_path: Path) -> None:
    wrong = refusal(tmp_path, "apps: {demo: {}}\nroles: [api, recorder]")
    assert str(wrong) == "roles: recorder is a role of the log stack alone"
    assert "roles" in str(refusal(tmp_path, "apps: {demo: {}}\nroles: [cook]"))
    wrong = refusal(tmp_path, f"{POSTGRES}\nroles: [router]")
    assert str(wrong) == "roles: router is a role of `handoff: queue` alone, here it is `worker`"
    wrong = refusal(tmp_path, f"{POSTGRES}\nhandoff: queue\nroles: [worker]")
    assert str(wrong) == "roles: worker is a role of `handoff: memory` alone, here it is `router` and `deliverer`"


def test_only_a_stack_that_keeps_what_is_handed_over_has_a_queue_for_it(tmp_path: Path) -> None:
    """Elsewhere there is nothing between routing and delivering."""
    for stack in ("apps: {demo: {}}", LOG):
        wrong = refusal(tmp_path, f"{stack}\nhandoff: queue")
        assert str(wrong).startswith("handoff: `queue` is of PostgreSQL alone")


def test_a_critical_worker_takes_requests_and_its_lane_and_does_nothing_else(tmp_path: Path) -> None:
    asked = f"{EXAMPLE}critical_worker: true\ngrpc: {{listen: 127.0.0.1:8081}}\n"
    config = read(tmp_path, f"{asked}workers: 2")
    apart = config.of_critical_worker()
    assert (config.workers, config.processes) == (2, 3)
    assert (config.has_critical_worker, apart.does()) == (True, frozenset({Role.API, Role.GATEWAY, Role.WORKER}))
    assert (apart.grpc.listen, apart.apps) == (None, config.apps)
    assert not read(tmp_path, f"{asked}workers: 1").has_critical_worker
    assert not read(tmp_path, f"{asked}workers: 2\nroles: [api]").has_critical_worker
    assert refusal(tmp_path, f"{asked}workers: {MAX_WORKERS}").path == "workers"
    log = f"{asked}workers: 2\nstack: log\nkafka: {{bootstrap: '127.0.0.1:9092'}}"
    assert refusal(tmp_path, log).path == "critical_worker"


def test_what_a_broker_once_carried_is_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    assert "outbox.to" in str(refusal(tmp_path, f"{POSTGRES}stack: relayed"))
    assert "outbox: {to: redis}" in str(refusal(tmp_path, f"{POSTGRES}broker: kafka"))
    assert "outbox.to" in str(refusal(tmp_path, POSTGRES, WAYPOST_STACK="relayed"))


def test_feeds_are_copied_to_a_cluster_that_reads_what_it_wrote(tmp_path: Path) -> None:
    asked = "apps: {demo: {}}\nfeeds: cassandra\n"
    assert refusal(tmp_path, asked).path == "cassandra"
    hosts = f"{asked}cassandra: {{hosts: [127.0.0.1], write_consistency: "
    assert refusal(tmp_path, f"{hosts}ONE}}").path == "cassandra.write_consistency"
    assert read(tmp_path, f"{hosts}LOCAL_QUORUM}}").feeds == "cassandra"


def test_only_postgresql_has_an_outbox_that_is_published(tmp_path: Path) -> None:
    assert refusal(tmp_path, "apps: {demo: {}}\noutbox: {to: redis}").path == "outbox.to"
    assert refusal(tmp_path, f"{LOG}store: postgresql://localhost/w\noutbox: {{to: kafka}}").path == "outbox.to"
    assert refusal(tmp_path, f"{POSTGRES}outbox: {{to: kafka}}").path == "kafka"
    assert str(refusal(tmp_path, f"{POSTGRES}roles: [relay]")) == (
        "roles: relay is a role where `outbox.to` says where to publish"
    )


def test_the_end_of_a_key_is_a_day_of_a_channel_that_the_app_has(tmp_path: Path) -> None:
    fcm = "fcm: {service_account_file: fcm.json}"
    config = read(tmp_path, f"apps: {{demo: {{{fcm}, expires_on: {{fcm: 2027-03-01}}}}}}")
    assert config.apps[DEMO].expires_on == {"fcm": dt.date(2027, 3, 1)}
    said = refusal(tmp_path, f"apps: {{demo: {{{fcm}, expires_on: {{apns: 2027-03-01}}}}}}")
    assert said.path == "apps.demo.expires_on.apns"
    assert refusal(tmp_path, f"apps: {{demo: {{{fcm}, expires_on: {{fcm: soon}}}}}}").path == "apps.demo.expires_on.fcm"
    said = refusal(tmp_path, f"apps: {{demo: {{{fcm}, rehearsed_on: {{apns: 2027-03-01}}}}}}")
    assert said.path == "apps.demo.rehearsed_on.apns"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("store: postgresql://waypost:hunter2@db/waypost", "store"),
        ("store: {url: 'postgresql://waypost@db/waypost?password=hunter2'}", "store.url"),
        ("redis: {url: 'redis://:hunter2@${HOST}:6379'}", "redis.url"),
        ("cassandra: {hosts: [a], username: w, password: hunter2}", "cassandra.password"),
        ("kafka: {bootstrap: 'a:1', options: {sasl.password: hunter2}}", "kafka.options.sasl.password"),
        ("apps: {demo: {fcm: {service_account_file: a, proxy: 'http://u:hunter2@p:1'}}}", "apps.demo.fcm.proxy"),
    ],
)
def test_a_secret_in_the_file_itself_is_refused_and_not_repeated(tmp_path: Path, text: str, path: str) -> None:
    refused = refusal(tmp_path, text, HOST="redis.example")
    assert refused.path == path
    assert "${NAME} or file:PATH" in str(refused)
    assert "hunter2" not in str(refused)


def test_a_secret_by_reference_is_taken_whatever_it_is_made_of(tmp_path: Path) -> None:
    """Also where the environment overrides the setting."""
    (tmp_path / "password").write_text("a:b@c\n")
    config = read(
        tmp_path,
        "apps: {demo: {}}\nredis: {url: 'redis://way:${PASSWORD}@redis.example'}\n"
        "cassandra: {hosts: [a], username: w, password: file:password}\n",
        PASSWORD="hunter2",
        WAYPOST_STORE="postgresql://w:hunter2@db/w",
    )
    assert config.cassandra is not None and config.redis is not None
    assert config.cassandra.password == "a:b@c"
    assert config.redis.url == "redis://way:hunter2@redis.example"
    assert config.store.url == "postgresql://w:hunter2@db/w"
