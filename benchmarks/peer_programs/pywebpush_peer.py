"""Sends to push services with pywebpush's asynchronous call on one aiohttp session."""

import asyncio
import json
import ssl

import aiohttp
from drive import TITLE, body, drive, order
from py_vapid import Vapid
from pywebpush import webpush_async


async def main() -> None:
    wanted = order()
    vapid = Vapid.from_file(wanted["vapid_key_file"])
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=wanted["ca_file"]), limit=0)
    subscriptions = wanted["subscriptions"]
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(n: int) -> None:
            answer = await webpush_async(
                subscriptions[n % len(subscriptions)],
                json.dumps({"title": TITLE, "body": body(n), "data": {"mark": str(n)}}),
                vapid_private_key=vapid,
                vapid_claims={"sub": "mailto:ops@example.com"},
                ttl=86400,
                aiohttp_session=session,
            )
            assert answer.status == 201, answer.status
            answer.release()

        await drive(send, wanted)


asyncio.run(main())
