"""The sender under test: its commands, the environment they get, and how they are ended."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from waypost.lab import credentials, twilio, webhook
from waypost.lab import email as mail
from waypost.lab.settings import LabSettings, LabUrls

COMMAND_S = 60.0
"""Seconds a command may run at least: the patience is for what it sent, not for its start."""
_READY_S, _STOP_S, _POLL_S = 60.0, 30.0, 0.05
_ENDED_WITH_US = (
    "exec 3<&0 </dev/null; "
    f"{{ trap '' TERM; cat <&3; kill -s TERM -- -$$; sleep {_STOP_S:g}; kill -s KILL -- -$$; }} >/dev/null 2>&1 & "
    "exec 3<&-"
)
"""The beginning of each shell: one part reads a pipe to its end, which comes with ours, and ends the others then."""


class CaseSender(Protocol):
    """A sender of what a case asks for."""

    async def send(self, environment: Mapping[str, str]) -> None:
        """Send to the targets that *environment* names, once each; return when the sender has been told to."""


class Asked:
    """A person who sends when asked to."""

    async def send(self, environment: Mapping[str, str]) -> None:
        """Print what is to be done, and wait for Enter."""
        bounce = environment.get("LAB_BOUNCE_FILE")
        first = f"hand in the bounce in {bounce}, then " if bounce else ""
        text = f"{environment['LAB_CASE']}: {first}send {environment['LAB_TEXT']!r} to the targets in "
        sys.stderr.write(f"{text}{environment['LAB_TARGETS_FILE']}, then press Enter. ")
        sys.stderr.flush()
        await asyncio.to_thread(sys.stdin.readline)


class Command:
    """A shell command that is run for every round of every case; what it prints goes to the log."""

    def __init__(self, command: str, log: BinaryIO, *, timeout_s: float) -> None:
        self._command, self._log, self._timeout_s = command, log, timeout_s

    async def send(self, environment: Mapping[str, str]) -> None:
        """Run it to its end, or until its time is over; then it is killed with all it started."""
        self._log.write(f"--- {environment['LAB_CASE']}, round {environment['LAB_ROUND']}\n".encode())
        self._log.flush()
        process = await _started(self._command, environment, self._log)
        try:
            async with asyncio.timeout(self._timeout_s):
                await process.wait()
        except TimeoutError:
            self._log.write(f"--- ended after {self._timeout_s:g} s\n".encode())
        finally:
            await _ended(process, signal.SIGKILL)


class Service:
    """A shell command that runs from before the first case to after the last."""

    def __init__(self, command: str, output: Path, log: BinaryIO) -> None:
        self._command, self._output, self._log = command, output, log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, environment: Mapping[str, str]) -> None:
        """Start it and wait for its first line. Raises TimeoutError, or ChildProcessError when it ends instead."""
        with self._output.open("wb") as output:
            self._process = process = await _started(self._command, environment, output, self._log)
        async with asyncio.timeout(_READY_S):
            while b"\n" not in self._output.read_bytes():
                if process.returncode is not None:
                    raise ChildProcessError(f"the service ended with {process.returncode} before it said a line")
                await asyncio.sleep(_POLL_S)

    async def stop(self) -> None:
        """Ask it to end, and make sure that it does."""
        if self._process is not None:
            await _ended(self._process, signal.SIGTERM)


def environment_of(settings: LabSettings, urls: LabUrls) -> dict[str, str]:
    """Build the environment: where the lab is and who may speak to it, added to our own variables."""
    directory = settings.directory.resolve()
    found = {f"LAB_{name.upper()}_URL": url for name, url in urls.by_name().items()}
    files = {
        "LAB_CA_FILE": credentials.CA,
        "LAB_APNS_KEY_FILE": credentials.APNS_KEY,
        "LAB_APNS_CERTIFICATE_FILE": credentials.APNS_CERTIFICATE,
        "LAB_FCM_SERVICE_ACCOUNT_FILE": credentials.SERVICE_ACCOUNT,
        "LAB_VAPID_KEY_FILE": credentials.VAPID_KEY,
        "LAB_TWILIO_TOKEN_FILE": twilio.TOKEN_FILE,
        "LAB_WEBHOOK_SECRET_FILE": webhook.SECRET,
        "LAB_EMAIL_PASSWORD_FILE": mail.PASSWORD_FILE,
        "LAB_EMAIL_CALLBACK_PASSWORD_FILE": mail.CALLBACK_PASSWORD_FILE,
    }
    found |= {name: str(directory / file) for name, file in files.items()}
    found |= {
        "LAB_APNS_KEY_ID": settings.key_id,
        "LAB_APNS_TEAM_ID": settings.team_id,
        "LAB_APNS_TOPIC": settings.topics[0],
        "LAB_FCM_PROJECT": settings.project_id,
        "LAB_EMAIL_PORT": str(urlsplit(urls.further["email"]).port),
        "LAB_EMAIL_USERNAME": mail.USERNAME,
    }
    return {**os.environ, **found}


async def _started(
    command: str, environment: Mapping[str, str], output: BinaryIO, errors: BinaryIO | None = None
) -> asyncio.subprocess.Process:
    """Start a command that ends, with all that it starts, when this process is gone."""
    return await asyncio.create_subprocess_shell(
        f"{_ENDED_WITH_US}\n{command}", env=dict(environment), stdin=_life(), stdout=output, stderr=errors or output,
        start_new_session=True,
    )  # fmt: skip


@cache
def _life() -> int:
    """Return the end to read of a pipe that nobody writes to, and that nothing closes but the end of this process."""
    read, _ = os.pipe()
    return read


async def _ended(process: asyncio.subprocess.Process, how: signal.Signals) -> None:
    """End a command and everything it started."""
    for number, patience_s in ((how, _STOP_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            async with asyncio.timeout(patience_s):
                await process.wait()
        except TimeoutError:
            continue
        if number == signal.SIGKILL:
            break
