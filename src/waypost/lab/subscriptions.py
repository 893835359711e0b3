"""The browsers' subscriptions, with the private halves that let the lab read what arrives; kept over restarts."""

import functools
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from waypost.lab.jose import to_base64url

_SCALAR_BYTES = 32


Transport = Literal["h2", "http1", "plain"]
"""The transport to the push service: HTTP/2 or 1.1 by ALPN, HTTP/1.1 alone, or without TLS."""


class Subscription(msgspec.Struct, frozen=True, gc=False):
    """A browser's subscription."""

    id: str
    service: str
    public_key: bytes
    secret: bytes
    """The private key's scalar; the key object is made when it is needed."""
    auth: bytes
    vapid_key: bytes | None = None
    """The only sender key allowed, when the subscription was restricted (RFC 8292 section 4)."""
    transport: Transport = "h2"
    browser: str = ""
    """The real browser that has the keys (`waypost.lab.browsers`); empty where the lab has them."""
    channel: str = ""
    """The name that this browser gave it."""


class Subscriptions:
    """All subscriptions, in memory and one line each in a file: a browser does not forget when a service restarts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Subscription] = {}
        if path.exists():
            for line in path.read_bytes().splitlines():
                subscription = msgspec.json.decode(line, type=Subscription)
                self._known[subscription.id] = subscription

    def get(self, subscription_id: str) -> Subscription | None:
        """Find one by its id."""
        return self._known.get(subscription_id)

    def make(
        self, count: int, *, service: str, vapid_key: bytes | None, transport: Transport = "h2"
    ) -> list[Subscription]:
        """Make subscriptions as browsers do: a fresh P-256 pair and 16 octets of shared secret for each."""
        return self._kept([_subscription(service, vapid_key, transport) for _ in range(count)])

    def of_browser(self, browser: str, channel: str, vapid_key: bytes | None) -> Subscription:
        """Make the subscription that a real browser asked for by the name *channel*."""
        made = Subscription(secrets.token_urlsafe(24), "mozilla", b"", b"", b"", vapid_key, "h2", browser, channel)
        return self._kept([made])[0]

    def __iter__(self) -> Iterator[Subscription]:
        """Go through all of them."""
        return iter(list(self._known.values()))

    def _kept(self, made: list[Subscription]) -> list[Subscription]:
        self._known.update((subscription.id, subscription) for subscription in made)
        self._path.touch(mode=0o600)
        with self._path.open("ab") as file:
            file.writelines(msgspec.json.encode(subscription) + b"\n" for subscription in made)
        return made


@functools.lru_cache(maxsize=10_000)
def private_key(subscription: Subscription) -> ec.EllipticCurvePrivateKey:
    """Return the browser's private key."""
    return ec.derive_private_key(int.from_bytes(subscription.secret), ec.SECP256R1())


def described(subscription: Subscription, endpoint: str) -> dict[str, object]:
    """Describe the subscription as `PushSubscription.toJSON()` shows it, and the lab's own `token`."""
    keys = {"p256dh": to_base64url(subscription.public_key), "auth": to_base64url(subscription.auth)}
    return {"endpoint": endpoint, "expirationTime": None, "keys": keys, "token": subscription.id}


def _subscription(service: str, vapid_key: bytes | None, transport: Transport) -> Subscription:
    key = ec.generate_private_key(ec.SECP256R1())
    point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    scalar = key.private_numbers().private_value.to_bytes(_SCALAR_BYTES)
    auth = secrets.token_bytes(16)
    return Subscription(secrets.token_urlsafe(24), service, point, scalar, auth, vapid_key, transport)
