"""Users with devices, written straight into the tables: a million through the API would be a bench of its own."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waypost.domain.ids import token_hash
from waypost.domain.time import DAY_MS
from waypost.stores.sql import schema
from waypost.stores.sql.driver import Connection

APP = "demo"
OF_FOUR_USERS = (
    ("android", "ios"),
    ("android", "android", "ios"),
    ("android", "web"),
    ("android", "android", "ios"),
)
"""60 % Android, 30 % iOS, 10 % browsers."""
DEVICES_PER_USER = 2.5
DEAD_EVERY = 100
"""One device in so many has a token that is dead."""
FADED_EVERY = 60
"""One iOS device in so many, so 0.5 % of all, is throttled at the first try of every notification. Not Android's:
FCM's 429 speaks of a whole project, and Waypost holds everything to it."""
USED_AGO_MS = 30 * DAY_MS
"""Devices were used before, some time ago: the first use of each is news, as it is every day."""
PAGE = 5_000

_COLUMNS = [column.name for column in schema.device.columns]


def register(connection: Connection, rows: Iterable[dict[str, Any]]) -> None:
    """Write devices, a page at a time."""
    insert = f"INSERT INTO device ({', '.join(_COLUMNS)}) VALUES "  # noqa: S608 - columns
    values = f"({', '.join('?' * len(_COLUMNS))})"
    remaining = iter(rows)
    while page := list(islice(remaining, PAGE)):
        connection.execute("BEGIN")
        connection.insert_all(insert, values, [tuple(each[name] for name in _COLUMNS) for each in page])
        connection.execute("COMMIT")


def devices(gateway_url: str, users: int, *, web: bool = True, app: str = APP) -> Iterator[dict[str, Any]]:
    """Yield the rows of so many users; without *web* the browsers are Android devices."""
    serial = apple = 0
    for user in range(users):
        for index, wanted in enumerate(OF_FOUR_USERS[user % 4]):
            platform = wanted if web or wanted != "web" else "android"
            kind = "dead" if serial % DEAD_EVERY == DEAD_EVERY // 2 else ""
            if platform == "ios":
                apple += 1
                kind = kind or ("fade" if apple % FADED_EVERY == 0 else "")
            token = _token(platform, kind, f"{app} {serial}", gateway_url)
            yield _row(app, f"user-{user}", f"device-{index}", platform) | token
            serial += 1


def iphones(users: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of users who have one iOS device each, none of them dead or throttled."""
    for user in range(users):
        yield _row(APP, f"vip-{user}", "iphone", "ios") | _token("ios", "", f"vip {user}", "")


def _row(app: str, user_id: str, device_id: str, platform: str) -> dict[str, Any]:
    now = int(time.time() * 1000)
    then = now - USED_AGO_MS
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    row |= {"app": app, "user_id": user_id, "device_id": device_id, "platform": platform, "active": 1}
    return row | {
        "registered_at": then,
        "last_seen_at": now,
        "token_updated_at": then,
        "last_used_at": then,
        "token_use": "alert",
    }


def _token(platform: str, kind: str, name: str, gateway_url: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    text = base64.urlsafe_b64encode(token_hash(name) * 6).decode().rstrip("=")
    if platform == "ios":
        row["token"] = (kind or "aaaa") + (token_hash(name).hex() + token_hash(name + "!").hex())[4:]
    elif platform == "android":
        row["token"] = f"{kind or 'live'}{text[:18]}:APA91b{text}"
    else:
        key = ec.generate_private_key(ec.SECP256R1()).public_key()
        point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        row |= {"token": f"{gateway_url}/push/{kind or 'live'}{text}", "p256dh": point, "auth": token_hash(name)}
    return row | {"token_hash": token_hash(row["token"])}
