"""The limits of callers: each limit that a request counts for, and the answer to who is over one."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.errors import ErrorCode, Unavailable, WaypostError
from waypost.domain.ids import AppId
from waypost.domain.limits import FixedWindow, Wait
from waypost.domain.time import SECOND_MS
from waypost.pipeline.intake import Caller
from waypost.ports.clock import Clock
from waypost.ports.limiter import Limiter
from waypost.telemetry import Metric, Telemetry

BARRED_LIMIT: Final = 10_000
"""The most addresses remembered as barred; then all are forgotten, and barred again at their next failure."""
PROVEN_LIMIT: Final = 10_000
"""The most credentials remembered as good; past it, the one that was verified longest ago is forgotten."""
LOGINS: Final = FixedWindow(10, 900 * SECOND_MS)
"""The most tries to log in with one name from one address."""
_NOTED: Final = FixedWindow(100, 900 * SECOND_MS)
"""The most refused logins of one address that are put on record one by one."""
_NOTED_IN_ALL: Final = FixedWindow(1_000, 900 * SECOND_MS)
_NOTED_ONCE: Final = FixedWindow(1, 900 * SECOND_MS)
_V6_SITE: Final = 64
"""The bits of an IPv6 address that one holder has: who has one address has all that begin alike."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class RateLimited(Unavailable):
    """The error of a limit exceeded; *policy* names it, *quota* and *window_s* are its size, *left* what remains."""

    code = ErrorCode.RATE_LIMITED

    def __init__(self, policy: str, window: FixedWindow, wait: Wait) -> None:
        self.policy = policy
        self.quota = window.limit
        self.window_s = window.window_ms // SECOND_MS
        self.left = wait.left
        after_s = max(1, -(-wait.wait_ms // SECOND_MS))
        super().__init__(f"over the limit of the {policy}: {self.quota} in {self.window_s} s", retry_after_s=after_s)


class LimitedRoute(Struct, frozen=True):
    """A route with a limit of its own."""

    name: str
    """The name in the configuration: a method and a path with ``{parameters}``, or ``gRPC`` and a method."""
    window: FixedWindow

    def pattern(self) -> re.Pattern[str]:
        """Compile the pattern for ``METHOD path`` of a request."""
        parts = re.split(r"\{[^}]*\}", self.name)
        return re.compile("[^/]+".join(re.escape(part) for part in parts))


class Bounds(Struct, frozen=True):
    """The limits of all entry points; None is no limit."""

    caller: FixedWindow | None = None
    callers: Mapping[tuple[AppId, str], FixedWindow | None] = {}
    """Limits for the callers named, in place of that for all."""
    apps: Mapping[AppId, FixedWindow | None] = {}
    user: FixedWindow | None = None
    address: FixedWindow | None = None
    failures: FixedWindow | None = None
    endpoints: Sequence[LimitedRoute] = ()
    trusted_proxies: Sequence[Network] = ()
    forwarded_header: str = "x-forwarded-for"


class Visit(Struct, frozen=True):
    """The facts of a request that are known before its body is read."""

    name: str
    """The route: ``METHOD path``, or ``gRPC Method``."""
    peer: str
    """The address that the connection comes from; "" where it has none."""
    headers: Callable[[str], Iterable[str]]
    """The values of a header, in order."""
    is_users: bool = False
    """Whether it came to the API of end users, whoever calls."""


class EntrypointLimits:
    """The counters of every request at every entry point; one for each process."""

    def __init__(self, bounds: Bounds, limiter: Limiter, clock: Clock, telemetry: Telemetry) -> None:
        self._bounds = bounds
        self._limiter = limiter
        self._clock = clock
        self._telemetry = telemetry
        self._endpoints = [(endpoint.pattern(), endpoint) for endpoint in bounds.endpoints]
        self._barred: dict[str, float] = {}
        self._proven: dict[bytes, float] = {}
        """Until when each credential that was good is let on from a barred address, by its hash."""

    def refuse_barred(self, digest: bytes, visit: Visit) -> None:
        """Raise RateLimited for an address that guessed too many keys, unless that of *digest* was good."""
        now_s, window = self._clock.monotonic(), self._bounds.failures
        if window is None or not self._barred or self._proven.get(digest, 0.0) > now_s:
            return
        left_s = self._barred.get(self.address_of(visit), 0.0) - now_s
        if left_s > 0:
            self._telemetry.count(Metric.LIMITED, limit="failures", app="")
            raise RateLimited("failures", window, Wait(0, int(left_s * SECOND_MS)))

    def was_good(self, digest: bytes) -> None:
        """Remember a credential that was verified."""
        window = self._bounds.failures
        if window is None:
            return
        self._proven.pop(digest, None)
        if len(self._proven) >= PROVEN_LIMIT:
            del self._proven[next(iter(self._proven))]
        self._proven[digest] = self._clock.monotonic() + window.window_ms / SECOND_MS

    def was_bad(self, digest: bytes) -> None:
        """Forget that a credential was good: it has ended, or was revoked."""
        self._proven.pop(digest, None)

    async def was_guessed(self, visit: Visit) -> None:
        """Count a key that there is not against its address."""
        window = self._bounds.failures
        if window is None:
            return
        address = self.address_of(visit)
        answer = await self._limiter.take(f"failures:{address}", window)
        if isinstance(answer, Wait):
            if len(self._barred) >= BARRED_LIMIT:
                self._barred.clear()
            self._barred[address] = self._clock.monotonic() + answer.wait_ms / SECOND_MS

    async def count_unvouched(self, visit: Visit) -> None:
        """Count a request without a valid credential; RateLimited where its address has sent too many."""
        window = self._bounds.address
        if window is not None:
            await self._take("address", AppId(""), f"address:{self.address_of(visit)}", window, 1)

    async def count_login(self, visit: Visit, name: str) -> None:
        """Count a try to log in as *name* from an address; RateLimited where there were too many."""
        named = hashlib.sha256(name.encode()).hexdigest()
        await self._take("login", AppId(""), f"login:{self.address_of(visit)}/{named}", LOGINS, 1)

    async def is_noteworthy(self, visit: Visit, *, is_limited: bool) -> bool:
        """Tell whether a login that was refused is put on record; of those over a limit the first one of an address."""
        kind, window = ("limited", _NOTED_ONCE) if is_limited else ("refused", _NOTED)
        for name, most in ((f"{kind}-login:{self.address_of(visit)}", window), ("refused-logins", _NOTED_IN_ALL)):
            if isinstance(await self._limiter.take(name, most), Wait):
                return False
        return True

    async def enter(self, caller: Caller, visit: Visit, user: str | None = None) -> None:
        """Count one request; RateLimited where it is one too many. *user* is the end user for whom it writes."""
        bounds, app = self._bounds, caller.app
        if (caller.user is not None or visit.is_users) and bounds.user is not None and user is not None:
            await self._take("user", app, f"user:{app}/{user}", bounds.user, 1)
        for pattern, endpoint in self._endpoints:
            if pattern.fullmatch(visit.name):
                subject = caller.name if caller.user is None else f"user:{caller.user}"
                name = f"endpoint:{endpoint.name}:{app}/{subject}"
                await self._take("endpoint", app, name, endpoint.window, 1)
        await self.count(caller, 1)

    def let_all_in(self, caller: Caller) -> bool:
        """Tell whether there is no limit that a request of a backend counts for, so that ``enter`` would do nothing."""
        has_own = self._window_of(caller) is not None or self._bounds.apps.get(caller.app) is not None
        return caller.user is None and not self._endpoints and not has_own

    async def count(self, caller: Caller, n: int) -> None:
        """Count *n* notifications of a caller, and of its app."""
        if n > 0:
            window = self._window_of(caller)
            if window is not None and caller.user is None:
                await self._take("caller", caller.app, f"caller:{caller.app}/{caller.name}", window, n)
            of_app = self._bounds.apps.get(caller.app)
            if of_app is not None:
                await self._take("app", caller.app, f"app:{caller.app}", of_app, n)

    def most(self, caller: Caller, n: int) -> int:
        """Return how many requests can be counted at once, *n* at most."""
        windows = (self._window_of(caller), self._bounds.apps.get(caller.app))
        return min([n, *(window.limit for window in windows if window is not None)])

    def address_of(self, visit: Visit) -> str:
        """Return the address that a request counts for; in IPv6 the site that the address is of."""
        address = self.origin_of(visit)
        if isinstance(address, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((address, _V6_SITE), strict=False))
        return str(address or "unknown")

    def origin_of(self, visit: Visit) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """Return where a request comes from: the peer, or the last that a trusted proxy names and that is none."""
        address = _parsed(visit.peer)
        if self._is_trusted(address):
            for hop in reversed(_hops(visit.headers(self._bounds.forwarded_header), self._bounds.forwarded_header)):
                address = _parsed(hop)
                if not self._is_trusted(address):
                    break
        return address

    def _window_of(self, caller: Caller) -> FixedWindow | None:
        return self._bounds.callers.get((caller.app, caller.name), self._bounds.caller)

    def _is_trusted(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._bounds.trusted_proxies)

    async def _take(self, policy: str, app: AppId, name: str, window: FixedWindow, n: int) -> None:
        if n > window.limit:
            why = f"{n} at once are more than the limit of the {policy} ever lets in: {window.limit}"
            raise WaypostError(why, ErrorCode.TOO_LARGE)
        answer = await self._limiter.take(name, window, n)
        if isinstance(answer, Wait):
            self._telemetry.count(Metric.LIMITED, n, limit=policy, app=app)
            raise RateLimited(policy, window, answer)


def _hops(values: Iterable[str], header: str) -> list[str]:
    """List the addresses that a request came by, as its headers have them; the last is the nearest."""
    elements = [element.strip() for value in values for element in value.split(",")]
    if header != "forwarded":
        return elements
    pairs = [[pair.strip().partition("=") for pair in element.split(";")] for element in elements]
    return [next((value.strip('"') for name, _, value in each if name.lower() == "for"), "") for each in pairs]


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse the address in *text*, without its port; None where it is none (RFC 7239 allows names, ``unknown``)."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
