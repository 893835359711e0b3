"""Counts of attempts and times to delivery, kept in memory for a moment and told to the metrics together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from waypost.domain.credential import CredentialId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Outcome, Taken, outcome_name
from waypost.domain.time import SECOND_MS
from waypost.telemetry import Metric, Telemetry

CODES: Final = 64
"""Codes of a credential that are told by name: who answers may make some up, and a series is for ever."""
OTHERS: Final = "(others)"


class Attempts:
    """The attempts of one lane since they were last told."""

    def __init__(self, lane: Lane, telemetry: Telemetry) -> None:
        self._lane = lane
        self._telemetry = telemetry
        self._outcomes: Counter[tuple[CredentialId, type[Outcome]]] = Counter()
        self._codes: Counter[tuple[CredentialId, str]] = Counter()
        self._took_s: list[float] = []
        self._plain = 0
        self._named: dict[CredentialId, set[str]] = {}

    def add(self, credential: CredentialId, outcome: Outcome, took_ms: int) -> None:
        """Count an attempt, of what waited for *took_ms* since it was accepted or due."""
        self._outcomes[credential, type(outcome)] += 1
        if isinstance(outcome, Taken):
            self._took_s.append(max(0, took_ms) / SECOND_MS)
        else:
            self._codes[credential, outcome.code] += 1

    def taken(self, credential: CredentialId, took_ms: Sequence[int]) -> None:
        """Count attempts that are settled in columns, by how long each waited since it was accepted or due."""
        self._outcomes[credential, Taken] += len(took_ms)
        self._plain += len(took_ms)
        self._took_s += [each / SECOND_MS if each > 0 else 0.0 for each in took_ms]

    def publish(self) -> None:
        """Tell what was counted since the last time."""
        outcomes, self._outcomes = self._outcomes, Counter()
        codes, self._codes = self._codes, Counter()
        took_s, self._took_s = self._took_s, []
        plain, self._plain = self._plain, 0
        for (credential, outcome), n in outcomes.items():
            labels = {**_provider(credential), "lane": self._lane, "outcome": outcome_name(outcome)}
            self._telemetry.count(Metric.ATTEMPTS, n, **labels)
        for (credential, code), n in codes.items():
            labels = {**_provider(credential), "code": self._name_of(credential, code)}
            self._telemetry.count(Metric.FAILED_ATTEMPTS, n, **labels)
        if plain:
            self._telemetry.count(Metric.PLAIN_ATTEMPTS, plain, lane=self._lane)
        if took_s:
            self._telemetry.observe_all(Metric.DELIVERY_SECONDS, took_s, lane=self._lane)

    def _name_of(self, credential: CredentialId, code: str) -> str:
        named = self._named.setdefault(credential, set())
        if len(named) < CODES:
            named.add(code)
        return code if code in named else OTHERS


def _provider(credential: CredentialId) -> dict[str, str]:
    return {"app": credential.app, "provider": credential.slot}
