"""Sends to APNs with aioapns."""

import asyncio
import ssl
from urllib.parse import urlsplit

from aioapns import APNs, NotificationRequest
from aioapns.connection import APNsProductionClientProtocol
from drive import TITLE, body, drive, order


async def main() -> None:
    wanted = order()
    gateway = urlsplit(wanted["url"])
    APNsProductionClientProtocol.APNS_SERVER = gateway.hostname
    APNsProductionClientProtocol.APNS_PORT = gateway.port
    tls = ssl.create_default_context(cafile=wanted["ca_file"])
    tls.set_alpn_protocols(["h2"])
    client = APNs(
        key=wanted["apns_key"],
        key_id="ABCDE12345",
        team_id="FGHIJ67890",
        topic="com.example.demo",
        ssl_context=tls,
    )
    tokens = wanted["tokens"]

    async def send(n: int) -> None:
        message = {"aps": {"alert": {"title": TITLE, "body": body(n)}}, "mark": str(n)}
        answer = await client.send_notification(
            NotificationRequest(device_token=tokens[n % len(tokens)], message=message)
        )
        assert answer.is_successful, answer.description

    await drive(send, wanted)


asyncio.run(main())
