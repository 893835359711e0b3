"""What the alerts are held to: metrics over time, and which alerts are raised of them and which are not."""

from __future__ import annotations

from typing import NamedTuple

DAY_S = 86_400
ATTEMPTS = 'waypost_attempts_total{{app="demo",lane="normal",provider="apns",outcome="{}"}}'
OLDEST = 'waypost_oldest_new_seconds{{app="demo",lane="{}"}}'
OPEN = 'waypost_open_deliveries{lane="normal",place="waiting"}'
CREDENTIAL = '{credential="demo/apns"}'
REQUESTS = 'waypost_http_request_seconds_{}{{route="{}"{}}}'


class Case(NamedTuple):
    """Series, each of one value a minute, and the alerts that are raised after so many minutes."""

    name: str
    series: dict[str, str]
    minutes: int = 24
    raised: tuple[str, ...] = ()


def _answers(within: str, route: str = "/v1/notifications") -> dict[str, str]:
    """Give a hundred answers a minute, of which a tenth takes longer than half a second and at most as long as said."""
    return {
        REQUESTS.format("bucket", route, ',le="0.5"'): "0+90x60",
        REQUESTS.format("bucket", route, f',le="{within}"'): "0+100x60",
        REQUESTS.format("bucket", route, ',le="+Inf"'): "0+100x60",
        REQUESTS.format("count", route, ""): "0+100x60",
    }


def _tried(taken: str, refused: str) -> dict[str, str]:
    return {ATTEMPTS.format("taken"): taken, ATTEMPTS.format("refused"): refused}


def _now_and_never(name: str, series: str, bad: str, good: str, raised: str, minutes: int = 24) -> list[Case]:
    """Make a pair of cases of one series: one that is raised, one that is not."""
    return [
        Case(f"{name}: raised", {series: bad}, minutes, (raised,)),
        Case(f"{name}: not yet", {series: good}, minutes),
    ]


def _counted(series: str, raised: str, minutes: int = 10) -> list[Case]:
    """Make a pair of cases of a counter: one that grows, one that has stood still for long."""
    return _now_and_never(series.partition("{")[0], series, "0 0 1 1 1 1 1 1 1 1 1", "3x60", raised, minutes)


CASES = [
    Case("nothing runs yet", {}),
    Case(
        "all is well",
        {
            'up{job="waypost"}': "1x60",
            **_tried("0+97x60", "0+3x60"),
            'waypost_queue_depth{lane="normal",instance="a"}': "900x60",
            'waypost_leased_total{lane="normal",instance="a"}': "0+100x60",
            OLDEST.format("critical"): "59x60",
            OPEN: "5000-10x60",
            "waypost_disk_free_bytes": "16x60",
            "waypost_disk_size_bytes": "100x60",
            **_answers("0.5"),
        },
    ),
    *_now_and_never("down", 'up{job="waypost",instance="a"}', "1x5 0x60", "1x60", "WaypostDown"),
    Case("three of a hundred refused", _tried("0+97x60", "0+3x60")),
    Case("six of a hundred refused", _tried("0+94x60", "0+6x60"), raised=("WaypostDeliveryDegraded",)),
    Case(
        "eleven of a hundred refused",
        _tried("0+89x60", "0+11x60"),
        raised=("WaypostDeliveryDegraded", "WaypostDeliveryFailing"),
    ),
    Case(
        "all refused, and none was ever taken",
        {ATTEMPTS.format("refused"): "0+20x60"},
        raised=("WaypostDeliveryDegraded", "WaypostDeliveryFailing"),
    ),
    Case("half of six in ten minutes refused", _tried("0+0.3x60", "0+0.3x60")),
    Case("refused for three minutes", _tried("0+50x60", "0x25 0+50x3"), minutes=28),
    Case(
        "nothing takes what waits",
        {
            'waypost_queue_depth{lane="normal",instance="a"}': "3x60",
            'waypost_leased_total{lane="normal",instance="a"}': "0+10x10 100x60",
        },
        raised=("WaypostWorkersStopped",),
    ),
    Case("nothing was ever taken", {'waypost_queue_depth{lane="bulk"}': "3x60"}, raised=("WaypostWorkersStopped",)),
    Case(
        "slow, but it moves",
        {
            'waypost_queue_depth{lane="normal",instance="a"}': "3x60",
            'waypost_leased_total{lane="normal",instance="a"}': "0+1x60",
        },
    ),
    Case("nothing to do", {'waypost_queue_depth{lane="normal"}': "0x60"}),
    Case(
        "no connection is free, and reads wait",
        {
            'waypost_store_pool{pool="reader"}': "4x60",
            'waypost_store_pool_busy{pool="reader"}': "4x60",
            'waypost_store_pool_waiting{pool="reader"}': "1x60",
        },
        raised=("WaypostStorePoolExhausted",),
    ),
    Case(
        "all connections are busy, and nobody waits",
        {
            'waypost_store_pool{pool="reader"}': "4x60",
            'waypost_store_pool_busy{pool="reader"}': "4x60",
            'waypost_store_pool_waiting{pool="reader"}': "0x60",
        },
    ),
    Case(
        "a deep queue",
        {
            'waypost_queue_depth{lane="normal",instance="a"}': "1001x60",
            'waypost_leased_total{lane="normal",instance="a"}': "0+10x60",
        },
        raised=("WaypostQueueDeep",),
    ),
    Case(
        "a deep queue of a bulk send",
        {
            'waypost_queue_depth{lane="bulk",instance="a"}': "900000x60",
            'waypost_leased_total{lane="bulk",instance="a"}': "0+10x60",
        },
    ),
    *_now_and_never("bulk late", OLDEST.format("bulk"), "3601x60", "3600x60", "WaypostBulkLate"),
    Case("answers take a second", _answers("1"), raised=("WaypostApiSlow",)),
    Case("answers take half a second", _answers("0.5")),
    Case("live connections last", _answers("30", route="/live")),
    Case("retries pile up", {OPEN: "0+20x60"}, 45, ("WaypostRetriesGrow",)),
    Case("retries become fewer", {OPEN: "5000-20x60"}, 45),
    Case("a few retries", {OPEN: "0+2x60"}, 45),
    *_now_and_never(
        "credential",
        f"waypost_credential_ends_timestamp_seconds{CREDENTIAL}",
        f"{29 * DAY_S}x60",
        f"{31 * DAY_S}x60",
        "WaypostCredentialEnding",
    ),
    Case(
        "a credential ends in two days",
        {f"waypost_credential_ends_timestamp_seconds{CREDENTIAL}": f"{2 * DAY_S}x60"},
        raised=("WaypostCredentialEnding", "WaypostCredentialEndsNow"),
    ),
    *_now_and_never(
        "rehearsed",
        f"waypost_credential_rehearsed_timestamp_seconds{CREDENTIAL}",
        f"{-366 * DAY_S}x60",
        f"{-364 * DAY_S}x60",
        "WaypostCredentialUnrehearsed",
    ),
    *_now_and_never(
        "denied",
        'waypost_denied_total{credential="demo/apns",reach="credential"}',
        "0+1x60",
        "3x60",
        "WaypostCredentialDenied",
    ),
    *_now_and_never(
        "breaker", f"waypost_breaker_open{CREDENTIAL}", "1x60", "0x25 1x9", "WaypostProviderStopped", minutes=32
    ),
    *_now_and_never("critical late", OLDEST.format("critical"), "61x60", "60x60", "WaypostCriticalLate"),
    *_now_and_never("late", OLDEST.format("high"), "901x60", "900x60", "WaypostLate"),
    *_now_and_never(
        "dead letters",
        'waypost_settled_total{app="demo",lane="normal",settlement="dead"}',
        "0+10x60",
        "0+5x60",
        "WaypostDeadLetters",
    ),
    *_counted('waypost_alerts_raised_total{app="demo",type="stuck_processing"}', "WaypostNotificationStuck"),
    *_now_and_never("balance", 'waypost_balance_difference{line="requests"}', "1x60", "0x60", "WaypostBalanceOff"),
    *_now_and_never("shed", 'waypost_shed_total{app="demo"}', "0+1x60", "7x60", "WaypostStoreBehind"),
    *_now_and_never("outcomes", "waypost_held_outcomes", "1x60", "0x60", "WaypostOutcomesHeld"),
    *_now_and_never("ledger", "waypost_ledger_behind_seconds", "61x60", "60x60", "WaypostLedgerBehind"),
    Case(
        "little room",
        {"waypost_disk_free_bytes": "14x60", "waypost_disk_size_bytes": "100x60"},
        raised=("WaypostDiskFilling",),
    ),
    Case(
        "no room",
        {"waypost_disk_free_bytes": "4x60", "waypost_disk_size_bytes": "100x60"},
        raised=("WaypostDiskFilling", "WaypostDiskFull"),
    ),
    *_now_and_never(
        "transaction", "waypost_oldest_transaction_seconds", "3601x60", "3600x60", "WaypostTransactionOpen"
    ),
    *_now_and_never("nodes", "waypost_registry_nodes_away", "2x60", "1x60", "WaypostRegistryNodesAway"),
    *_counted('waypost_webhooks_disabled_total{app="demo"}', "WaypostWebhookDisabled"),
    *_counted('waypost_bulk_failed_total{app="demo"}', "WaypostBulkJobFailed"),
    *_counted("waypost_archive_unsound_total", "WaypostArchiveFileDamaged"),
    *_counted("waypost_log_dropped_total", "WaypostLogDropped"),
]
"""The cases; a time of 0 is the beginning of UNIX time, so ends of credentials are counted from there."""

IN_HOURS = [
    *_now_and_never("missing", "waypost_months_missing", "1x60", "0x20 1x40", "WaypostMonthMissing", 50),
    *_now_and_never("kept", "waypost_months_undropped", "1x90", "0x20 1x70", "WaypostMonthUndropped", 80),
]
"""The cases of what must last for days: a value and an evaluation an hour, of so many hours."""


class Figure(NamedTuple):
    """Series, and the value of a figure that is recorded of them after half an hour."""

    name: str
    series: dict[str, str]
    labels: str
    value: float


SETTLED = 'waypost_settled_total{app="demo",lane="normal",settlement="sent",instance="%s"}'
FAILED = 'waypost_failed_attempts_total{app="demo",provider="apns",code="BadDeviceToken"}'
DELIVERY = 'waypost_delivery_seconds_{}{{lane="normal"}}'

FIGURES = [
    Figure(
        "waypost:sent:rate5m",
        {SETTLED % "a": "0+60x60", SETTLED % "b": "0+30x60"},
        '{app="demo",lane="normal"}',
        1.5,
    ),
    Figure("waypost:success:ratio10m", _tried("0+93x60", "0+7x60"), '{app="demo",lane="normal"}', 0.93),
    Figure("waypost:success:ratio10m", {ATTEMPTS.format("taken"): "0+5x60"}, '{app="demo",lane="normal"}', 1),
    Figure(
        "waypost:failures:ratio10m",
        {**_tried("0+93x60", "0+7x60"), FAILED: "0+7x60"},
        '{app="demo",provider="apns",code="BadDeviceToken"}',
        0.07,
    ),
    Figure(
        "waypost:delivery_seconds:mean5m",
        {DELIVERY.format("sum"): "0+30x60", DELIVERY.format("count"): "0+120x60"},
        '{lane="normal"}',
        0.25,
    ),
    Figure("waypost:worked:rate1m", {'waypost_leased_total{lane="high",instance="a"}': "0+120x60"}, '{lane="high"}', 2),
    Figure("waypost:http_request_seconds:p95_5m", _answers("1"), '{route="/v1/notifications"}', 0.75),
]
"""Figures of which the value can be told by heart."""
