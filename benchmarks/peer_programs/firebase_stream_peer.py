"""Works off a Redis stream with firebase-admin's asynchronous batches, one after another: read, send, acknowledge."""

import asyncio
import json
import time

import firebase_admin
import redis
from drive import cpu_s, order
from firebase_admin import credentials, messaging


def message(fields: dict[bytes, bytes]) -> messaging.Message:
    """What goes to the one device of a user, in the form of the notifications service."""
    job = {name.decode(): value.decode() for name, value in fields.items()}
    return messaging.Message(
        token=f"live{job['userId'].removeprefix('user-')}:APA91b{'x' * 120}",
        notification=messaging.Notification(title=job["title"], body=job["body"]),
        data=json.loads(job["data"]) | {"channel": job["channel"]},
        android=messaging.AndroidConfig(
            priority="high", notification=messaging.AndroidNotification(channel_id=job["channel"])
        ),
        apns=messaging.APNSConfig(
            headers={"apns-priority": "10"},
            payload=messaging.APNSPayload(messaging.Aps(mutable_content=True)),
        ),
        webpush=messaging.WebpushConfig(headers={"Urgency": "high"}),
    )


async def main() -> None:
    wanted = order()
    messaging._MessagingService.FCM_URL = wanted["url"] + "/v1/projects/{0}/messages:send"
    firebase_admin.initialize_app(credentials.Certificate(wanted["service_account_file"]))
    client = redis.Redis.from_url(wanted["redis"])
    before, started, left = 0.0, 0.0, wanted["count"]
    while left:
        read = client.xreadgroup(wanted["group"], "loop", {wanted["stream"]: ">"}, count=wanted["batch"])
        entries = read[0][1]
        answer = await messaging.send_each_async([message(fields) for _, fields in entries])
        assert answer.failure_count == 0, answer.responses[0].exception
        client.xack(wanted["stream"], wanted["group"], *(entry for entry, _ in entries))
        left -= len(entries)
        if not started:  # the first batch was the warm-up
            before, started = cpu_s(), time.perf_counter()
    print(json.dumps({"seconds": time.perf_counter() - started, "cpu_s": cpu_s() - before}))


asyncio.run(main())
