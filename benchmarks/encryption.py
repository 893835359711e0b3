"""Web Push encryption (RFC 8291) of a message, ours and pywebpush's, each with a new key pair of its own."""

from __future__ import annotations

import base64
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pywebpush import WebPusher

from waypost.bench.rows import Row, row
from waypost.channels.push.encryption import CURVE, SenderKeys, encrypt, new_salt
from waypost.domain.device import SubscriptionKeys

MESSAGES = 200
ROUNDS = 7
PLAINTEXT = b"x" * 300


def run() -> list[Row]:
    """Rounds in turn; the medians."""
    keys = [_subscription() for _ in range(MESSAGES)]
    ways = {
        "a new key pair each": partial(_ours, keys, 0.0),
        "one key pair an hour (webpush.reuse_sender_key)": partial(_ours, keys, 3600.0),
        "pywebpush": partial(_theirs, [_pusher(each) for each in keys]),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            taken[name].append(_cpu_us(way))
    median = {name: statistics.median(each) for name, each in taken.items()}
    theirs = median.pop("pywebpush")
    return [
        row("encryption", name, us, "µs CPU a message", f"pywebpush {theirs:.0f}", us / theirs)
        for name, us in median.items()
    ]


def _cpu_us(way: Callable[[], None]) -> float:
    before = time.process_time()
    way()
    return (time.process_time() - before) / MESSAGES * 1e6


def _ours(subscriptions: list[SubscriptionKeys], reuse_s: float) -> None:
    own = SenderKeys(reuse_s)
    for keys in subscriptions:
        encrypt(PLAINTEXT, keys, own.next(time.monotonic()), new_salt())


def _theirs(pushers: list[WebPusher]) -> None:
    for pusher in pushers:
        pusher.encode(PLAINTEXT)


def _subscription() -> SubscriptionKeys:
    point = ec.generate_private_key(CURVE).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return SubscriptionKeys(point, os.urandom(16))


def _pusher(keys: SubscriptionKeys) -> WebPusher:
    texts = {"p256dh": _text(keys.p256dh), "auth": _text(keys.auth)}
    return WebPusher({"endpoint": "https://push.example.com/1", "keys": texts})


def _text(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")
