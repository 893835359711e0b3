"""Attempts to connect: as tasks, within the budget of sockets, with backoff after what was of no use."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from .dial import DialError
from .link import Link
from .settings import PoolSettings
from .sockets import Sockets


class Attempts:
    """The attempts to open links on demand, reported by `on_open` with the link, or `on_failure` with why and alert."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Link]],
        settings: PoolSettings,
        loop: asyncio.AbstractEventLoop,
        sockets: Sockets,
        jitter: Callable[[], float],
        waiting: Callable[[], int],
    ) -> None:
        self.running: set[asyncio.Task[None]] = set()
        self.total = 0
        self.last_failure = ""
        self.on_open: Callable[[Link], None]
        self.on_failure: Callable[[str, str], None]
        self.on_retry: Callable[[], None]
        self._connect = connect
        self._settings = settings
        self._loop = loop
        self._sockets = sockets
        self._jitter = jitter
        self._waiting = waiting
        self._failures = 0
        self._retry: asyncio.TimerHandle | None = None
        self._stopped = False

    def may_begin(self) -> bool:
        """Tell whether an attempt may be made now, as far as backoff is concerned."""
        return self._retry is None and not self._stopped

    def begin(self) -> bool:
        """Try to connect, in the background; False if there are too many sockets."""
        if not self._sockets.take():
            return False
        self.total += 1
        task = self._loop.create_task(self._attempt())
        self.running.add(task)
        task.add_done_callback(self._ended)
        return True

    def retry_at(self) -> float:
        """Return when the next attempt is due, by the loop's clock; 0 if none is planned."""
        return self._retry.when() if self._retry is not None else 0.0

    def was_of_use(self) -> None:
        """Forget failures, since a connection has answered: the server is well."""
        self._failures = 0

    def back_off(self) -> float:
        """Plan the next attempt after a connection failed or was of no use; return the seconds until then."""
        settings = self._settings
        delay_s = min(settings.backoff_cap_s, settings.backoff_base_s * 2.0 ** min(self._failures, 30))
        if self._waiting():
            delay_s = min(delay_s, settings.backoff_waiting_cap_s)
        delay_s *= 0.5 + 0.5 * self._jitter()
        self._failures += 1
        if self.may_begin():
            self._retry = self._loop.call_later(delay_s, self._try_again)
        return delay_s

    def hurry(self) -> None:
        """Bring the next attempt forward, since a request waits for a connection."""
        if self._retry is not None:
            at = self._loop.time() + self._settings.backoff_waiting_cap_s * (0.5 + 0.5 * self._jitter())
            if at < self._retry.when():
                self._retry.cancel()
                self._retry = self._loop.call_at(at, self._try_again)

    async def stop(self) -> None:
        """Give up what is being tried, and try no more."""
        self._stopped = True
        if self._retry is not None:
            self._retry.cancel()
        for task in list(self.running):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self.running.discard(task)

    async def _attempt(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        failure = alert = ""
        try:
            link = await self._connect()
            failure, alert = link.start(), link.alert
        except DialError as error:
            failure, alert = str(error), error.alert
        finally:
            self.running.discard(task)
        if failure:
            self._sockets.give_back()
            self.last_failure = failure
            self.on_failure(failure, alert)
        else:
            self.on_open(link)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Cancelled, perhaps before its first step, or a bug.
        self.running.discard(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            self._sockets.give_back()
        if error is not None:
            self._loop.call_exception_handler({"message": "connecting raised", "exception": error})
            self.on_failure(f"connecting raised {type(error).__name__}", "")

    def _try_again(self) -> None:
        self._retry = None
        self.on_retry()
