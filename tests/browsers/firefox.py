"""Firefox without a screen, whose push service is the lab."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = "firefox-esr"
_PREFERENCES = {
    "dom.push.testing.allowInsecureServerURL": True,
    "permissions.default.desktop-notification": 1,
    "dom.webnotifications.requireuserinteraction": False,
    "dom.push.maxQuotaPerSubscription": 100_000,
    "alerts.useSystemBackend": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
}
"""It may push to us and show without being asked, and calls nobody else."""


@contextlib.contextmanager
def firefox(directory: Path, push_url: str, page: str) -> Iterator[None]:
    """Open *page* in a Firefox with a profile of its own, until the block ends."""
    program = shutil.which(PROGRAM)
    if program is None:
        pytest.skip(f"{PROGRAM} is not installed")
    profile = directory / "profile"
    profile.mkdir()
    chosen = {**_PREFERENCES, "dom.push.serverURL": push_url}
    lines = (f'user_pref("{name}", {_written(value)});\n' for name, value in chosen.items())
    (profile / "user.js").write_text("".join(lines))
    command = [program, "--headless", "--no-remote", "--new-instance", "--profile", str(profile), page]
    environment = os.environ | {"MOZ_HEADLESS": "1", "HOME": str(directory), "MOZ_CRASHREPORTER_DISABLE": "1"}
    with (directory / "firefox.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
