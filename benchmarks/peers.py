"""The same notifications to the same gateway by the clients that others use, and by ours, in turn."""

from __future__ import annotations

import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from benchmarks import environments
from benchmarks.programs import in_rust
from waypost.bench.programs import GatewayProgram, gateway
from waypost.bench.rows import Row, row
from waypost.lab import credentials

HERE = Path(__file__).parent / "peer_programs"
LATENCIES_MS = (0, 50)
IN_FLIGHT = 500
ROUNDS = 3


@dataclass(frozen=True)
class Peer:
    """One client: what it speaks, how it is started, and how many notifications show what it costs."""

    name: str
    channel: str
    count: int
    start: tuple[str, ...]
    """What comes before the path of the order: ``python`` in the peers' environment, ``go`` or ``java``."""


OURS = {channel: Peer("Waypost", channel, 5_000, ("waypost",)) for channel in ("apns", "fcm", "webpush")}
MAIN = (  # known to be fast, at Apple's protocol
    Peer("Go sideshow/apns2", "apns", 10_000, ("go", "apns2")),
    Peer("aioapns", "apns", 2_000, ("aioapns_peer.py",)),
)
PUSHY = Peer("Pushy", "apns", 20_000, ("java",))
WEBPUSH_GO = Peer("Go webpush-go", "webpush", 5_000, ("go", "webpush-go"))
MORE = (
    PUSHY,
    Peer("httpx", "apns", 600, ("httpx_peer.py",)),
    Peer("firebase-admin", "fcm", 1_000, ("firebase_peer.py",)),
    Peer("pywebpush", "webpush", 1_000, ("pywebpush_peer.py",)),
    WEBPUSH_GO,
)


def run_more() -> list[Row]:
    """All others."""
    return compare(MORE)


def compare(peers: Sequence[Peer], latencies_ms: Sequence[int] = LATENCIES_MS) -> list[Row]:
    """CPU of a delivery and deliveries a second of each, against ours in the same run."""
    environments.install()
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name:
        folder = Path(name)
        credentials.write_missing(folder, "bench")
        with gateway(in_rust(), folder / credentials.SERVER) as server:
            credentials.write_service_account(folder, "bench", f"{server.url}/token")
            return [
                each
                for latency_ms in latencies_ms
                for channel in OURS
                for each in _compared(folder, server, channel, latency_ms, [p for p in peers if p.channel == channel])
            ]


def _compared(folder: Path, server: GatewayProgram, channel: str, latency_ms: int, peers: list[Peer]) -> list[Row]:
    if not peers:
        return []
    server.set_latency(**{channel: latency_ms})
    seen: dict[str, list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for peer in (OURS[channel], *peers):
            seen.setdefault(peer.name, []).append(_sent(folder, server, peer))
    medians = {name: [statistics.median(each) for each in zip(*runs, strict=True)] for name, runs in seen.items()}
    own_us, own_per_s = medians["Waypost"]
    rows = [row("peers", f"{channel} after {latency_ms} ms, Waypost's sender: CPU a delivery", own_us, "µs")]
    for peer in peers:
        us, per_s = medians[peer.name]
        what = f"{channel} after {latency_ms} ms, {peer.name}"
        rows.append(row("peers", f"{what}: CPU a delivery", us, "µs", f"Waypost {own_us:.1f}", us / own_us))
        rows.append(row("peers", f"{what}: a second", per_s, "1/s", f"Waypost {own_per_s:.0f}", per_s / own_per_s))
    return rows


def _sent(folder: Path, server: GatewayProgram, peer: Peer) -> tuple[float, float]:
    """CPU µs of a delivery, and deliveries a second; the gateway must have taken every one."""
    order = folder / "order.json"
    order.write_text(json.dumps(_order(folder, server, peer)))
    before = server.total("accepted")
    ca_file = str(folder / credentials.CA)
    trusting = os.environ | {"REQUESTS_CA_BUNDLE": ca_file, "SSL_CERT_FILE": ca_file}
    ended = subprocess.run(
        [*_command(peer), str(order), *_last(peer)], stdout=subprocess.PIPE, check=True, env=trusting
    )
    taken = server.total("accepted") - before
    assert taken > peer.count, (peer.name, taken)
    seen = json.loads(ended.stdout)
    return seen["cpu_s"] / peer.count * 1e6, peer.count / seen["seconds"]


def _command(peer: Peer) -> list[str]:
    match peer.start[0]:
        case "waypost":
            return [sys.executable, "-m", "benchmarks.waypost_sender"]
        case "go":
            return [str(environments.go_program()), peer.start[1]]
        case "java":
            return environments.java_program()
        case program:
            return [str(environments.PYTHON), str(HERE / program)]


def _last(peer: Peer) -> list[str]:
    return [peer.channel] if peer.start == ("waypost",) else []


def _order(folder: Path, server: GatewayProgram, peer: Peer) -> dict[str, Any]:
    if peer.channel == "apns":
        tokens = [f"{n:064x}" for n in range(1_000)]
    else:
        tokens = [f"{n:022d}:APA91b{n:0134d}" for n in range(1_000)]
    key = load_pem_private_key((folder / credentials.VAPID_KEY).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return {
        "url": server.url,
        "ca_file": str(folder / credentials.CA),
        "apns_key": (folder / credentials.APNS_KEY).read_text(),
        "apns_key_file": str(folder / credentials.APNS_KEY),
        "service_account_file": str(folder / credentials.SERVICE_ACCOUNT),
        "vapid_key_file": str(folder / credentials.VAPID_KEY),
        "vapid_public": _text(_point(key)),
        "vapid_private": _text(key.private_numbers().private_value.to_bytes(32)),
        "count": peer.count,
        "in_flight": IN_FLIGHT,
        "tokens": tokens,
        "subscriptions": [_subscription(server.url, n) for n in range(100)] if peer.channel == "webpush" else [],
    }


def _subscription(url: str, n: int) -> dict[str, Any]:
    keys = {"p256dh": _text(_point(ec.generate_private_key(ec.SECP256R1()))), "auth": _text(os.urandom(16))}
    return {"endpoint": f"{url}/push/{n:032x}", "keys": keys}


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _text(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")
