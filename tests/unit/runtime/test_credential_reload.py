"""What is done when the files of credentials change, and before they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract.clock import StoppedClock
from tests.shows import shows
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import DAY_MS, SECOND_MS, Instant, later
from waypost.runtime.credential_reload import CredentialReloader
from waypost.telemetry import Event, Metric, Silent

pytestmark = pytest.mark.asyncio


class Noted(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []
        self.gauges: list[tuple[Metric, float, dict[str, str]]] = []

    def event(self, event: Event, /, **fields: object) -> None:
        """Keep it."""
        self.events.append((event, fields))

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep it."""
        self.gauges.append((metric, value, labels))


class Key:
    """A credential in a file, whose content is what is used; "broken" cannot be."""

    name = "demo/apns"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.settings: object = "as configured"
        self.end: Instant | None = None
        self.used = [file.read_text()]
        self.surprise: OSError | None = None
        self.began, self.let_go = asyncio.Event(), asyncio.Event()
        self.let_go.set()
        self.asked_in: list[threading.Thread] = []

    def made_of(self) -> tuple[object, Sequence[str]]:
        """See Held."""
        self.asked_in.append(threading.current_thread())
        return self.settings, [str(self._file)]

    def put(self, content: str | None) -> None:
        """Replace the file; None takes it away."""
        self._file.unlink() if content is None else self._file.write_text(content)

    async def reload(self) -> None:
        """See Held."""
        self.began.set()
        await self.let_go.wait()
        if self.surprise is not None:
            raise self.surprise
        content = self._file.read_text() if self._file.exists() else "broken"
        if content == "broken":
            raise ConfigurationError("apps.demo.apns.key_file", "cannot be used")
        self.used.append(content)

    def ends_at(self) -> Instant | None:
        """See Held."""
        self.asked_in.append(threading.current_thread())
        return self.end


@pytest.fixture
def key(tmp_path: Path) -> Key:
    file = tmp_path / "key"
    file.write_text("first")
    return Key(file)


async def test_what_has_changed_is_reloaded_once(key: Key) -> None:
    """Also where only the settings changed; a file that was merely touched is not."""
    noted = Noted()
    reloader = CredentialReloader([key], StoppedClock(), noted, warns=True)
    key.put("first")
    await reloader.look()
    assert key.used == ["first"]
    key.put("second")
    for _ in range(2):
        await reloader.look()
    key.settings = "another key id"
    await reloader.look()
    assert key.used == ["first", "second", "second"]
    assert noted.events == [(Event.CREDENTIAL_RELOADED, {"credential": "demo/apns"})] * 2


@pytest.mark.parametrize("broken", ["broken", None])
async def test_what_cannot_be_used_is_told_once_and_tried_again_when_it_has_changed(
    key: Key, broken: str | None
) -> None:
    noted = Noted()
    reloader = CredentialReloader([key], StoppedClock(), noted, warns=True)
    key.put(broken)
    for _ in range(2):
        await reloader.look()
    why = "apps.demo.apns.key_file: cannot be used"
    assert noted.events == [(Event.CREDENTIAL_REFUSED, {"credential": "demo/apns", "why": why})]
    key.put("third")
    await reloader.look()
    assert key.used == ["first", "third"]


async def test_what_fails_by_surprise_is_tried_at_each_look_and_keeps_no_other_from_its_turn(
    tmp_path: Path, key: Key
) -> None:
    """A plug-in's error, or a provider that is away while the new sender starts; its text stays out of the log."""
    noted, other = Noted(), Key(tmp_path / "key")
    other.name = "demo/fcm"
    reloader = CredentialReloader([key, other], StoppedClock(), noted, warns=True)
    key.surprise = OSError("a secret")
    key.put("second")
    for _ in range(2):
        await reloader.look()
    assert other.used == ["first", "second"]
    refused = (Event.CREDENTIAL_REFUSED, {"credential": "demo/apns", "why": "OSError"})
    assert noted.events == [refused, (Event.CREDENTIAL_RELOADED, {"credential": "demo/fcm"}), refused]
    key.surprise = None
    await reloader.look()
    assert key.used == ["first", "second"]


async def test_who_stops_waits_for_every_look_that_goes_on(key: Key) -> None:
    """However often it was hurried."""
    reloader = CredentialReloader([key], StoppedClock(), Noted(), warns=True)
    key.let_go.clear()
    key.put("second")
    await reloader.start()
    reloader.hurry()
    reloader.hurry()
    await key.began.wait()
    before = asyncio.all_tasks() - {asyncio.current_task()}
    await reloader.stop()
    assert len(before) == 3
    assert asyncio.all_tasks() - {asyncio.current_task()} == set()


async def test_files_are_read_beside_the_loop(key: Key) -> None:
    """They may be large, or on a network."""
    reloader = CredentialReloader([key], StoppedClock(), Noted(), warns=True)
    key.asked_in.clear()
    await reloader.look()
    assert len(key.asked_in) == 2
    assert threading.main_thread() not in key.asked_in


@shows("S1-128")
async def test_an_end_is_told_once_a_day_from_30_days_before(key: Key) -> None:
    noted, clock = Noted(), StoppedClock()
    reloader = CredentialReloader([key], clock, noted, warns=True)
    key.end = later(clock.now(), 31 * DAY_MS)
    said: list[dict[str, str]] = []
    for _ in range(3):
        for _ in range(2):
            await reloader.look()
        said.append(reloader.says())
        clock.advance(DAY_MS)
    told = [fields["days_left"] for event, fields in noted.events if event is Event.CREDENTIAL_ENDING]
    assert told == [29]
    assert said == [{}, {}, {"demo/apns": "ends in 29 days"}]
    assert noted.gauges[0] == (Metric.CREDENTIAL_ENDS, key.end / SECOND_MS, {"credential": "demo/apns"})
    clock.advance(30 * DAY_MS)
    assert reloader.says() == {"demo/apns": "has ended"}


@shows("S1-129")
@pytest.mark.parametrize(("warns", "told"), [(True, [366, 367]), (False, [])])
async def test_a_rehearsal_that_is_more_than_a_year_old_is_told_of_once_a_day(
    key: Key, warns: bool, told: list[int]
) -> None:
    noted, clock = Noted(), StoppedClock()
    rehearsals = {"demo/apns": later(clock.now(), -364 * DAY_MS), "demo/fcm": clock.now()}
    reloader = CredentialReloader([key], clock, noted, warns=warns, rehearsals=lambda: rehearsals)
    for _ in range(4):
        for _ in range(2):
            await reloader.look()
        clock.advance(DAY_MS)
    said = [fields for event, fields in noted.events if event is Event.CREDENTIAL_UNREHEARSED]
    assert said == [{"credential": "demo/apns", "days_ago": days} for days in told]


async def test_a_new_end_is_known_at_once(key: Key) -> None:
    clock = StoppedClock()
    reloader = CredentialReloader([key], clock, Noted(), warns=True)
    key.end = later(clock.now(), DAY_MS)
    await reloader.look()
    key.put("second")
    key.end = later(clock.now(), 90 * DAY_MS)
    assert reloader.says() == {"demo/apns": "ends in 1 days"}
    await reloader.look()
    assert reloader.says() == {}


async def test_one_process_alone_speaks_of_ends(key: Key) -> None:
    noted, clock = Noted(), StoppedClock()
    key.end = later(clock.now(), DAY_MS)
    reloader = CredentialReloader([key], clock, noted, warns=False)
    await reloader.look()
    assert (noted.events, noted.gauges) == ([], [])
    assert reloader.says() == {"demo/apns": "ends in 1 days"}
