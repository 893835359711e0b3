"""`python -m waypost.lab`: the lab alone, as `waypost lab` runs it."""

import argparse
import os
from pathlib import Path
from typing import Any

from waypost.lab.lab import run_lab
from waypost.lab.settings import LabSettings

OTHER_PORTS = (
    "apns-sandbox", "apns-broadcast", "apns-channels", "webpush-http1", "webpush-plain", "browsers", "metadata"
)  # fmt: skip


def main() -> None:
    """Read the command line and run a lab until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m waypost.lab", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="where credentials are kept")
    parser.add_argument("--host", default="127.0.0.1")
    for name, port in (("apns", 2197), ("fcm", 2198), ("webpush", 2199), ("oauth", 2191), ("admin", 2190)):
        parser.add_argument(f"--{name}-port", type=int, default=port, help=f"default {port}; 0 is any free one")
    for name in OTHER_PORTS:
        parser.add_argument(f"--{name}-port", type=int, default=0, help="any free one unless given")
    parser.add_argument("--faults", type=Path, help="a YAML file of fault rules")
    parser.add_argument("--lenient", action="store_true", help="only refuse what the vendors name an answer for")
    parser.add_argument("--known-tokens-only", action="store_true", help="refuse tokens the lab has not made")
    parser.add_argument("--journal", action="store_true", help="append accepted pushes to received.ndjson")
    parser.add_argument("--fcm-quota", type=int, default=600_000, help="messages an FCM project may send in a minute")
    parser.add_argument("--json", action="store_true", help="say where everything is as one JSON line")
    given = parser.parse_args()
    os.umask(0o077)  # keys, and what was sent, are for our user alone
    ports: dict[str, Any] = {name: port for name, port in vars(given).items() if name.endswith("_port")}
    settings = LabSettings(
        directory=given.directory, host=given.host, **ports,
        faults=given.faults, strict=not given.lenient, accept_any_token=not given.known_tokens_only,
        journal=given.journal, fcm_quota_per_minute=given.fcm_quota,
    )  # fmt: skip
    run_lab(settings, json=given.json)


if __name__ == "__main__":
    main()
