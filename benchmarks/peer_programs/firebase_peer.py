"""Sends to FCM with firebase-admin's asynchronous batches."""

import asyncio

import firebase_admin
from drive import TITLE, body, drive, order
from firebase_admin import credentials, messaging

BATCH = 500


async def main() -> None:
    wanted = order()
    messaging._MessagingService.FCM_URL = wanted["url"] + "/v1/projects/{0}/messages:send"
    firebase_admin.initialize_app(credentials.Certificate(wanted["service_account_file"]))
    tokens = wanted["tokens"]

    async def send(n: int) -> None:
        first = n * BATCH
        messages = [
            messaging.Message(
                token=tokens[each % len(tokens)],
                notification=messaging.Notification(title=TITLE, body=body(each)),
                data={"mark": str(each)},
            )
            for each in range(first, first + BATCH)
        ]
        answer = await messaging.send_each_async(messages)
        assert answer.failure_count == 0, answer.responses[0].exception

    # Its own batches are what is in flight; the warm-up is one of them.
    await drive(send, wanted | {"count": wanted["count"] // BATCH, "in_flight": 1}, warm_up=1)


asyncio.run(main())
