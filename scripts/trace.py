"""Trace one delivery, from POST to receipt, and count calls, files and returns: ``python -m scripts.trace [--list]``.

One worker runs here, on a SQLite file, against the provider lab in a process of its own; a client in another thread
sends one notification to one device. A first one warms what is made once. Counted are calls and resumptions of
functions of the package ``waypost``, in all threads but the client's and until the receipt is there.
"""

import asyncio
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

import waypost
from waypost.bootstrap.registry import load
from waypost.bootstrap.serving import serve
from waypost.cli.children import Children
from waypost.cli.keys import make_key
from waypost.cli.lab_admin import LabAdmin
from waypost.client import Client, Submission

PACKAGE = str(Path(waypost.__file__).parent) + "/"
NOTIFICATION: Submission = {"user_id": "user-1", "title": "Your parcel is here", "body": "Left at the front door."}
FINAL_TIMEOUT_S = 30.0
SETTLED_S = 1.0
"""Seconds after which one delivery is over for certain."""
TICKER = "every"
"""The function that repeats a duty of a worker."""
LAST = "Settler.write"
"""The function that writes receipts."""


class Trace:
    """The calls of our functions, in order, while it is on."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note a call: see ``sys.setprofile``."""
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(PACKAGE) and not _in_ticker(frame):
            self.calls.append((frame.f_code.co_filename.removeprefix(PACKAGE), frame.f_code.co_qualname))

    def cut(self) -> None:
        """Drop what follows the last call that settles: background work."""
        last = max(n for n, (_, name) in enumerate(self.calls) if name == LAST)
        del self.calls[last + 1 :]

    def figures(self) -> tuple[int, int, int]:
        """Count calls, files, and returns: how often a call is in a file that was left before."""
        files = [file for file, _ in self.calls]
        runs = [file for before, file in zip([None, *files], files, strict=False) if file != before]
        return len(files), len(set(files)), len(runs) - len(set(runs))


def _in_ticker(frame: FrameType | None) -> bool:
    """Tell whether a ticker called: what it repeats belongs to no delivery."""
    while frame is not None:
        if frame.f_code.co_qualname == TICKER:
            return True
        frame = frame.f_back
    return False


def configuration(lab: dict[str, Any]) -> dict[str, Any]:
    """Build the configuration of one worker with one credential, of the lab's FCM."""
    files = Path(lab["directory"])
    fcm = {"service_account_file": str(files / "fcm.json"), "endpoint": lab["fcm"], "ca_file": str(files / "ca.pem")}
    store, listen = "sqlite:///waypost.db", "127.0.0.1:0"
    return {"store": store, "listen": listen, "workers": 1, "apps": {"demo": {"fcm": fcm}}}


def drive(trace: Trace, client: Client, token: str) -> None:
    """Send one to warm what is made once, and one that is traced; then stop the worker."""
    sys.setprofile(None)
    try:
        client.add_device("user-1", "phone", {"platform": "android", "token": token})
        client.wait(client.send({**NOTIFICATION, "data": {"n": "0"}})["id"], FINAL_TIMEOUT_S)
        time.sleep(SETTLED_S)
        trace.is_on = True
        sent = client.send({**NOTIFICATION, "data": {"n": "1"}})
        time.sleep(SETTLED_S)  # asking whether it is over would be traced, too
        trace.is_on = False
        detail = client.wait(sent["id"], FINAL_TIMEOUT_S)
        assert [receipt["status"] for receipt in detail["receipts"]] == ["sent"], detail
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def traced(scratch: Path) -> Trace:
    """Serve in this process, trace one delivery, and stop."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    trace = Trace()
    with Children(scratch) as children:
        ports = [f"--{name}-port=0" for name in ("apns", "fcm", "webpush", "oauth", "admin")]
        lab = children.start("lab", ["lab", "--directory", str(scratch / "lab"), *ports], environ)
        path = scratch / "waypost.yaml"
        path.write_text(yaml.safe_dump(configuration(lab)), encoding="utf-8")
        config = load(path, environ)
        key, _ = asyncio.run(make_key(config, "demo", "trace"))
        token = LabAdmin(lab["admin"]).token("android")
        drivers: list[threading.Thread] = []

        def announce(url: str, _grpc: str | None) -> None:
            drivers.append(threading.Thread(target=drive, args=(trace, Client(url, key), token)))
            drivers[0].start()

        threading.setprofile(trace)
        sys.setprofile(trace)
        serve(config, path, announce=announce)
        sys.setprofile(None)
        threading.setprofile(None)
        drivers[0].join()
    return trace


def main() -> None:
    """Print the figures, with ``--list`` after the calls."""
    with tempfile.TemporaryDirectory(prefix="waypost-trace-") as scratch:
        trace = traced(Path(scratch))
    trace.cut()
    if "--list" in sys.argv[1:]:
        print("\n".join(f"{file} :: {name}" for file, name in trace.calls))
    calls, files, returns = trace.figures()
    print(f"{calls} calls in {files} files, {returns} returns to a file already left")


if __name__ == "__main__":
    main()
