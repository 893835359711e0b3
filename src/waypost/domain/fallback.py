"""Fallbacks inside a channel: which credential a delivery goes out with, and where it goes when that refuses. Pure.

Health decides, beside the order of the configuration. The first one that takes what it is asked for gets all; one that
comes back gets a probe, and then ever more (docs/decisions/0049).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Self, assert_never

from msgspec import Struct

from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, FailureClass
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Outcome, Refused, Unreachable
from waypost.domain.retry import Exhausted, RetryPolicy
from waypost.domain.settlement import Dead, Settlement, again_or_expired
from waypost.domain.time import Instant


class Fallbacks(Struct, frozen=True):
    """The settings of all apps: which credentials stand in for others, and who does not wait for an operator."""

    chains: Mapping[CredentialId, Sequence[CredentialId]] = {}
    """Of each credential for which others stand in: itself first, then those in order."""
    failing: Collection[AppId] = frozenset()
    """The apps whose deliveries fail where every account refuses them."""

    @classmethod
    def of(cls, orders: Iterable[Sequence[CredentialId]], failing: Collection[AppId] = frozenset()) -> Self:
        """Make them of the *orders* in which the credentials of channels are tried; each stands in for each."""
        chains = {each: (each, *(other for other in order if other != each)) for order in orders for each in order}
        return cls(chains, failing)

    def chain(self, credential: CredentialId) -> Sequence[CredentialId]:
        """List the credentials to try in place of *credential*, itself first."""
        return self.chains.get(credential) or (credential,)


class Standing(Struct, frozen=True):
    """The standing of one credential for one delivery."""

    credential: CredentialId
    room: int
    """How many more its breakers let through now: 0 while open, 1 for a probe, few while it comes back."""
    is_denied: bool = False
    """Whether its breaker is open since the account is refused: only who mends that ends it."""
    has_refused: bool = False
    """Whether it refused this very delivery."""

    @property
    def takes_it(self) -> bool:
        """Whether the delivery may go out with it now."""
        return self.room > 0 and not self.has_refused

    @property
    def is_out(self) -> bool:
        """Whether it will not take the delivery, however long that waits."""
        return self.has_refused or (self.is_denied and self.room <= 0)


class Next(Struct, frozen=True, tag=True):
    """Another credential takes the delivery now; *code* and *why* are of the one that did not."""

    code: str
    why: str


class Nobody(Struct, frozen=True, tag=True):
    """Every account refuses the delivery, and its app does not wait for an operator."""

    code: str
    why: str


Detour = Next | Nobody
"""What becomes of a delivery that its credential did not take, where it is not to wait for that one."""


def way(standings: Sequence[Standing]) -> CredentialId | None:
    """Return the first credential that takes the delivery now; None where none does."""
    return next((each.credential for each in standings if each.takes_it), None)


def is_for_nobody(standings: Sequence[Standing], *, fails: bool) -> bool:
    """Tell whether a delivery *fails* now, since every account is refused."""
    return fails and all(each.is_out for each in standings)


def detour(outcome: Outcome, standings: Sequence[Standing], *, is_open: bool, fails: bool) -> Detour | None:
    """Say where a delivery goes after *outcome*; None: whatever follows without a fallback.

    Only after an answer that says that nothing was taken and that concerns our account: a refusal of the account, or
    of what it may not send, or a provider that is not there while its breaker *is_open*. What was not answered may have
    been taken: nobody else gets it for that reason.
    """
    match outcome:
        case CredentialRejected(code, why) if way(standings) is None:
            return Nobody(code, why) if is_for_nobody(standings, fails=fails) else None
        case CredentialRejected(code, why):
            return Next(code, why)
        case Refused(code, why, elsewhere=True) if way(standings) is not None:
            return Next(code, why)
        case Unreachable(code, why) if is_open and way(standings) is not None:
            return Next(code, why)
        case _:
            return None


def detoured(detour: Detour, delivery: Delivery, policy: RetryPolicy, now: Instant) -> Settlement:
    """Say what happens to *delivery* next, which its credential did not take, and which is not to wait for that one.

    That spends no retry: nothing was wrong with it.
    """
    match detour:
        case Next(code, why):
            return again_or_expired(delivery, now, code, why, spends_attempt=False)
        case Nobody(code, why):
            return Dead(code, why, FailureClass.TERMINAL, policy.on_exhausted is Exhausted.DLQ)
        case _:
            assert_never(detour)
