"""The credentials and certificates of a process: reloaded when their files change, with warnings before they end."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from waypost.domain.errors import ConfigurationError
from waypost.domain.time import DAY_MS, SECOND_MS, Instant, later
from waypost.ports.clock import Clock
from waypost.runtime.ticker import every
from waypost.telemetry import Event, Metric, Telemetry

LOOK_S = 5.0
REHEARSED_DAYS = 365
"""Days after which the renewal of a credential is to be rehearsed again."""
WARN_DAYS = 30
"""Days before its end from which a credential is warned of."""
URGENT_DAYS = 3
"""Days before its end from which somebody is woken."""


class LoadedCredential(Protocol):
    """A credential or certificate in use."""

    @property
    def name(self) -> str:
        """The name by which events, metrics and readiness call it."""
        ...

    def made_of(self) -> tuple[object, Sequence[str]]:
        """Return the settings and the files that it is made of now."""
        ...

    async def reload(self) -> None:
        """Use what the files say now for all that begins; with a ConfigurationError all stays as it is."""
        ...

    def ends_at(self) -> Instant | None:
        """Return when it ends; None where that is not known."""
        ...


class CredentialReloader:
    """A watcher of the credentials *held*, in this order (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(
        self,
        held: Sequence[LoadedCredential],
        clock: Clock,
        telemetry: Telemetry,
        *,
        warns: bool,
        rehearsals: Callable[[], Mapping[str, Instant]] = dict,
    ) -> None:
        """Create the watcher, before the files are first read. *warns*: whether this process warns of coming ends.

        *rehearsals* says when the renewal of a credential was last rehearsed.
        """
        self._rehearsals = rehearsals
        self._held = held
        self._clock = clock
        self._telemetry = telemetry
        self._warns = warns
        self._states = [_state(each) for each in held]
        self._ends: dict[str, Instant] = {}
        self._tell_at = Instant(0)
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._hurried: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin to check every few seconds."""
        self._task = asyncio.create_task(every(LOOK_S, self.look, self._telemetry, "reloader"))

    async def stop(self) -> None:
        """Stop checking."""
        tasks = [*self._hurried, *filter(None, (self._task,))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hurry(self) -> None:
        """Check now, or as soon as the check that is running is over."""
        hurried = asyncio.ensure_future(self.look())
        self._hurried.add(hurried)
        hurried.add_done_callback(self._hurried.discard)

    async def look(self) -> None:
        """Reload what changed; tell of ends where something did, and once a day."""
        async with self._looking:
            changed = [await self._look_at(place, each) for place, each in enumerate(self._held)]
            if any(changed) or self._clock.now() >= self._tell_at:
                await self._tell()

    def says(self) -> dict[str, str]:
        """Describe what is near its end."""
        now = self._clock.now()
        return {name: why for name, ends_at in self._ends.items() if (why := ending(ends_at, now)) is not None}

    async def _look_at(self, place: int, held: LoadedCredential) -> bool:
        """Reload a credential that has changed, and tell whether it did. One that was refused is tried again when
        it changes again, one that failed otherwise at the next look.
        """
        state = self._states[place]
        try:
            state = await asyncio.to_thread(_state, held)
            if state == self._states[place]:
                return False
            await held.reload()
        except ConfigurationError as wrong:
            self._states[place] = state
            self._telemetry.event(Event.CREDENTIAL_REFUSED, credential=held.name, why=str(wrong))
            return False
        except Exception as surprise:  # noqa: BLE001 - a plug-in's fault must not keep the others from being looked at
            self._telemetry.event(Event.CREDENTIAL_REFUSED, credential=held.name, why=type(surprise).__name__)
            return False
        self._states[place] = state
        self._telemetry.event(Event.CREDENTIAL_RELOADED, credential=held.name)
        return True

    async def _tell(self) -> None:
        now = self._clock.now()
        known = await asyncio.to_thread(lambda: {each.name: _end_of(each) for each in self._held})
        self._tell_at = later(now, DAY_MS)
        self._ends = {name: ends_at for name, ends_at in known.items() if ends_at is not None}
        for name, ends_at in self._ends.items() if self._warns else ():
            self._telemetry.gauge(Metric.CREDENTIAL_ENDS, ends_at / SECOND_MS, credential=name)
            if ending(ends_at, now) is not None:
                self._telemetry.event(Event.CREDENTIAL_ENDING, credential=name, days_left=days_left(ends_at, now))
        for name, at in self._rehearsals().items() if self._warns else ():
            self._telemetry.gauge(Metric.CREDENTIAL_REHEARSED, at / SECOND_MS, credential=name)
            if (days_ago := (now - at) // DAY_MS) > REHEARSED_DAYS:
                self._telemetry.event(Event.CREDENTIAL_UNREHEARSED, credential=name, days_ago=days_ago)


def days_left(ends_at: Instant, now: Instant) -> int:
    """Return the whole days until *ends_at*; negative once it has passed."""
    return (ends_at - now) // DAY_MS


def ending(ends_at: Instant, now: Instant) -> str | None:
    """Describe a coming end; None while it is far."""
    days = days_left(ends_at, now)
    if days >= WARN_DAYS:
        return None
    return f"ends in {days} days" if days >= 0 else "has ended"


def _state(held: LoadedCredential) -> tuple[object, tuple[bytes | None, ...]]:
    """Return the settings and the digests of the files: the time of a change says less, and is not always a new one."""
    settings, files = held.made_of()
    return settings, tuple(_digest(file) for file in files)


def _end_of(held: LoadedCredential) -> Instant | None:
    try:
        return held.ends_at()
    except Exception:  # noqa: BLE001 - a plug-in's fault must not keep the others' ends from being told
        return None


def _digest(file: str) -> bytes | None:
    try:
        return hashlib.blake2b(Path(file).read_bytes()).digest()
    except OSError:
        return None
