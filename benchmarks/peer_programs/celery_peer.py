"""What a Python team would write today: a Celery task for each notification, Redis as its broker, SQLite beside it.

`celery -A celery_peer worker`; the order's path is in PEERS_ORDER. The task reads the user's devices, sends to APNs and
FCM over HTTP/2 with httpx and to push services with pywebpush, keeps a receipt for each device, and is acknowledged
late: a worker may die. It has no retries, budgets, dedup or status. Run as a program it submits the notifications.
"""

import json
import os
import sqlite3
import ssl
from pathlib import Path

import httpx
import requests
from celery import Celery
from celery.signals import worker_process_init
from py_vapid import Vapid
from pywebpush import WebPushException, webpush

wanted = json.loads(Path(os.environ["PEERS_ORDER"]).read_text())
app = Celery("peer", broker=wanted["redis"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=8,
    broker_connection_retry_on_startup=True,
)


class Connections:
    """What each worker process opens once."""

    store: sqlite3.Connection
    http: httpx.Client
    session: requests.Session
    vapid: Vapid


@worker_process_init.connect
def connect(**_: object) -> None:
    """After the fork."""
    Connections.store = sqlite3.connect(wanted["database"], timeout=30, isolation_level=None)
    Connections.store.execute("PRAGMA journal_mode = WAL")
    tls = ssl.create_default_context(cafile=wanted["ca_file"])
    Connections.http = httpx.Client(http2=True, verify=tls, timeout=30)
    Connections.session = requests.Session()
    Connections.session.verify = wanted["ca_file"]
    Connections.vapid = Vapid.from_file(wanted["vapid_key_file"])


@app.task(name="notify")
def notify(user_id: str, title: str, text: str, mark: str) -> None:
    """Tell one user on every device."""
    devices = Connections.store.execute("SELECT platform, token, keys FROM device WHERE user_id = ?", (user_id,))
    receipts = [(mark, token, _send(platform, token, keys, title, text, mark)) for platform, token, keys in devices]
    Connections.store.executemany("INSERT INTO receipt VALUES (?, ?, ?)", receipts)


def _send(platform: str, token: str, keys: str | None, title: str, text: str, mark: str) -> int:
    if platform == "web":
        subscription = {"endpoint": token, "keys": json.loads(keys or "{}")}
        message = json.dumps({"title": title, "body": text, "data": {"mark": mark}})
        claims: dict[str, str | int] = {"sub": "mailto:ops@example.com"}
        try:
            answer = webpush(
                subscription,
                message,
                vapid_private_key=Connections.vapid,
                vapid_claims=claims,
                ttl=86400,
                requests_session=Connections.session,
            )
        except WebPushException as refused:
            return refused.status_code or 0
        return int(answer.status_code)
    authorization = {"authorization": f"bearer {'x' * 200}"}
    if platform == "ios":
        headers = authorization | {"apns-topic": "com.example.demo", "apns-push-type": "alert"}
        url = f"{wanted['url']}/3/device/{token}"
        body: dict[str, object] = {"aps": {"alert": {"title": title, "body": text}}, "mark": mark}
    else:
        headers, url = authorization, f"{wanted['url']}/v1/projects/bench/messages:send"
        body = {"message": {"token": token, "notification": {"title": title, "body": text}, "data": {"mark": mark}}}
    return Connections.http.post(url, json=body, headers=headers).status_code


if __name__ == "__main__":
    for n in range(wanted["count"]):
        text = f"Number {n} was left at the front door."
        notify.delay(f"user-{n % wanted['users']}", "Your parcel is here", text, str(n))
