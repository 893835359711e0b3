"""Every alert: when it is raised, how bad it is, and what it says; the runbook has a section for each."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from scripts.observability.figures import API_P95_S, SUCCESS, of
from waypost.domain.backlog import LATE_AFTER_S
from waypost.domain.notification import Lane
from waypost.runtime.credential_reload import REHEARSED_DAYS, URGENT_DAYS, WARN_DAYS
from waypost.runtime.disk import FULL_SHARE, LOW_SHARE
from waypost.telemetry import Metric

DAY_S: Final = 86_400
LEAST_ATTEMPTS: Final = 100
"""Attempts in ten minutes from which their success says something."""


class Alert(NamedTuple):
    """A rule that wakes somebody."""

    name: str
    severity: Literal["critical", "warning"]
    expression: str
    summary: str
    lasts: str = ""
    """How long it must be so, for example ``5m``; at once where it is empty."""


def _low_success(below: float) -> str:
    attempts = f"sum by (app, lane) (increase({of(Metric.ATTEMPTS)}[10m]))"
    return f"{SUCCESS} < {below} and {attempts} >= {LEAST_ATTEMPTS}"


def _grew(metric: Metric, labels: str = "") -> str:
    return f"increase({of(metric)}{labels}[15m])"


_DEPTH: Final = of(Metric.DEPTH)
_POOL: Final = f"{of(Metric.STORE_POOL_BUSY)} >= {of(Metric.STORE_POOL)} and {of(Metric.STORE_POOL_WAITING)} > 0"
_RETRIES: Final = f'{of(Metric.OPEN_DELIVERIES)}{{place="waiting"}}'
_DEAD: Final = '{settlement="dead"}'
_DISK: Final = f"{of(Metric.DISK_FREE)} / {of(Metric.DISK_SIZE)}"

ALERTS: Final = (
    Alert(
        "WaypostDown",
        "critical",
        'up{job="waypost"} == 0',
        "{{ $labels.instance }} does not answer",
        "2m",
    ),
    Alert(
        "WaypostDeliveryFailing",
        "critical",
        _low_success(0.9),
        "only {{ $value | humanizePercentage }} of attempts of {{ $labels.app }} in lane {{ $labels.lane }} are taken",
        "5m",
    ),
    Alert(
        "WaypostDeliveryDegraded",
        "warning",
        _low_success(0.95),
        "{{ $value | humanizePercentage }} of attempts of {{ $labels.app }} in lane {{ $labels.lane }} are taken",
        "10m",
    ),
    Alert(
        "WaypostWorkersStopped",
        "critical",
        f"sum by (instance, lane) ({_DEPTH}) > 0"
        f" unless sum by (instance, lane) (increase({of(Metric.LEASED)}[5m])) > 0",
        "{{ $value }} notifications wait in lane {{ $labels.lane }} of {{ $labels.instance }}, and nothing takes them",
        "5m",
    ),
    Alert(
        "WaypostStorePoolExhausted",
        "critical",
        _POOL,
        "all connections of {{ $labels.instance }} to the store are busy ({{ $labels.pool }}), and reads wait",
        "2m",
    ),
    Alert(
        "WaypostQueueDeep",
        "warning",
        f'sum by (instance, lane) ({_DEPTH}{{lane!="bulk"}}) > 1000',
        "{{ $value }} notifications wait in lane {{ $labels.lane }} of {{ $labels.instance }}",
        "5m",
    ),
    Alert(
        "WaypostBulkLate",
        "warning",
        f'{of(Metric.OLDEST_NEW)}{{lane="bulk"}} > {LATE_AFTER_S[Lane.BULK]}',
        "a bulk notification of {{ $labels.app }} has waited for {{ $value | humanizeDuration }}",
        "5m",
    ),
    Alert(
        "WaypostApiSlow",
        "warning",
        f'{API_P95_S}{{route!~"/live.*"}} > 0.5'
        f" and sum by (route) (increase({of(Metric.REQUEST_SECONDS, '_count')}[5m])) >= 20",
        "a request in twenty to {{ $labels.route }} takes longer than {{ $value | humanizeDuration }}",
        "5m",
    ),
    Alert(
        "WaypostRetriesGrow",
        "warning",
        f"max by (lane) ({_RETRIES}) > 100 and max by (lane) (deriv({_RETRIES}[15m])) > 0",
        "{{ $value }} deliveries in lane {{ $labels.lane }} wait for another attempt, and there are ever more",
        "15m",
    ),
    Alert(
        "WaypostCredentialEnding",
        "warning",
        f"{of(Metric.CREDENTIAL_ENDS)} - time() < {WARN_DAYS * DAY_S}",
        "{{ $labels.credential }} on {{ $labels.instance }} ends in {{ $value | humanizeDuration }}: renew it",
    ),
    Alert(
        "WaypostCredentialEndsNow",
        "critical",
        f"{of(Metric.CREDENTIAL_ENDS)} - time() < {URGENT_DAYS * DAY_S}",
        "{{ $labels.credential }} on {{ $labels.instance }} ends in {{ $value | humanizeDuration }}",
    ),
    Alert(
        "WaypostCredentialUnrehearsed",
        "warning",
        f"time() - {of(Metric.CREDENTIAL_REHEARSED)} > {REHEARSED_DAYS * DAY_S}",
        "the renewal of {{ $labels.credential }} was last rehearsed {{ $value | humanizeDuration }} ago",
    ),
    Alert(
        "WaypostCredentialDenied",
        "critical",
        f"{_grew(Metric.DENIED)} > 0",
        "the provider refuses {{ $labels.credential }} ({{ $labels.reach }})",
        "15m",
    ),
    Alert(
        "WaypostProviderStopped",
        "critical",
        f"{of(Metric.BREAKER)} > 0",
        "nothing goes to the provider of {{ $labels.credential }}; breaker.opened in the log says why",
        "10m",
    ),
    Alert(
        "WaypostCriticalLate",
        "critical",
        f'{of(Metric.OLDEST_NEW)}{{lane="critical"}} > {LATE_AFTER_S[Lane.CRITICAL]}',
        "a critical notification of {{ $labels.app }} has waited for {{ $value | humanizeDuration }}",
        "2m",
    ),
    Alert(
        "WaypostLate",
        "warning",
        f'{of(Metric.OLDEST_NEW)}{{lane=~"high|normal|silent"}} > {LATE_AFTER_S[Lane.NORMAL]}',
        "a notification of {{ $labels.app }} in lane {{ $labels.lane }} has waited for {{ $value | humanizeDuration }}",
        "5m",
    ),
    Alert(
        "WaypostDeadLetters",
        "warning",
        f"{_grew(Metric.SETTLED, _DEAD)} > 100",
        "{{ $value | humanize }} deliveries of {{ $labels.app }} failed for good; waypost dead list shows them",
    ),
    Alert(
        "WaypostNotificationStuck",
        "warning",
        f"{_grew(Metric.ALERTS_RAISED)} > 0",
        "nobody moves {{ $value }} notifications of {{ $labels.app }}; waypost alerts list --open names them",
    ),
    Alert(
        "WaypostBalanceOff",
        "critical",
        f"{of(Metric.BALANCE_DIFFERENCE)} > 0",
        "{{ $value }} {{ $labels.line }} are nowhere, or somewhere and never came; waypost balance --audit says which",
        "1m",
    ),
    Alert(
        "WaypostStoreBehind",
        "critical",
        f"rate({of(Metric.SHED)}[5m]) > 0",
        "{{ $labels.instance }} refuses requests of {{ $labels.app }} ({{ $labels.cause }}): its store is behind",
        "5m",
    ),
    Alert(
        "WaypostOutcomesHeld",
        "critical",
        f"{of(Metric.HELD_OUTCOMES)} > 0",
        "{{ $value }} outcomes on {{ $labels.instance }} cannot be written: is the store away or full?",
        "2m",
    ),
    Alert(
        "WaypostLedgerBehind",
        "warning",
        f"{of(Metric.LEDGER_BEHIND)} > 60",
        "the ledger lacks the last {{ $value | humanizeDuration }} of the log",
        "5m",
    ),
    Alert(
        "WaypostDiskFilling",
        "warning",
        f"{_DISK} < {LOW_SHARE}",
        "{{ $value | humanizePercentage }} of the disk of {{ $labels.instance }} are free",
        "5m",
    ),
    Alert(
        "WaypostDiskFull",
        "critical",
        f"{_DISK} < {FULL_SHARE}",
        "{{ $value | humanizePercentage }} of the disk of {{ $labels.instance }} are free",
        "1m",
    ),
    Alert(
        "WaypostTransactionOpen",
        "warning",
        f"{of(Metric.OLDEST_TRANSACTION)} > 3600",
        "somebody has kept a transaction open on the database server for {{ $value | humanizeDuration }}",
    ),
    Alert(
        "WaypostMonthMissing",
        "warning",
        f"{of(Metric.MONTHS_MISSING)} > 0",
        "{{ $value }} tables of this month or the next are missing; store.months in the log names them",
        "2d",
    ),
    Alert(
        "WaypostMonthUndropped",
        "warning",
        f"{of(Metric.MONTHS_UNDROPPED)} > 0",
        "{{ $value }} tables of months that are over cannot be dropped: who reads them for days on end?",
        "3d",
    ),
    Alert(
        "WaypostRegistryNodesAway",
        "critical",
        f"{of(Metric.REGISTRY_NODES_AWAY)} >= 2",
        "{{ $value }} nodes of the registry of devices are away: registrations stop, look-ups hang on the last copy",
        "1m",
    ),
    Alert(
        "WaypostWebhookDisabled",
        "warning",
        f"{_grew(Metric.WEBHOOKS_DISABLED)} > 0",
        "a receiver of webhooks of {{ $labels.app }} answered 410; webhook.disabled in the log names it",
    ),
    Alert(
        "WaypostBulkJobFailed",
        "warning",
        f"{_grew(Metric.BULK_FAILED)} > 0",
        "a bulk job of {{ $labels.app }} has failed; waypost bulk show says why, resume or cancel it",
    ),
    Alert(
        "WaypostArchiveFileDamaged",
        "warning",
        f"{_grew(Metric.ARCHIVE_UNSOUND)} > 0",
        "a file of the archive is lost or damaged; waypost doctor names it, and archive.damaged in the log",
    ),
    Alert(
        "WaypostLogDropped",
        "warning",
        f"{_grew(Metric.LOG_DROPPED)} > 0",
        "nobody reads the log of {{ $labels.instance }}: lines are lost",
    ),
)
"""The alerts, those that say that nothing works first."""
