"""The folders that systemd gives a service."""

from __future__ import annotations

from collections.abc import Mapping


def run_dir_of_systemd(environ: Mapping[str, str]) -> str | None:
    """Return the folder where a service of systemd may write: one that outlives a restart before one that does not.

    Each variable has several folders, with colons between, where the unit names several (systemd.exec(5)).
    """
    if state := environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return f"{state}/waypost.run"
    return environ.get("RUNTIME_DIRECTORY", "").partition(":")[0] or None
