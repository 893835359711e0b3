"""Sends to APNs with httpx and a token that is signed once, as in many a tutorial."""

import asyncio
import ssl

import httpx
from drive import TITLE, body, drive, order


async def main() -> None:
    wanted = order()
    tls = ssl.create_default_context(cafile=wanted["ca_file"])
    headers = {"apns-topic": "com.example.demo", "apns-push-type": "alert", "authorization": f"bearer {'x' * 200}"}
    tokens = wanted["tokens"]
    async with httpx.AsyncClient(http2=True, verify=tls, headers=headers, timeout=60) as client:

        async def send(n: int) -> None:
            message = {"aps": {"alert": {"title": TITLE, "body": body(n)}}, "mark": str(n)}
            answer = await client.post(f"{wanted['url']}/3/device/{tokens[n % len(tokens)]}", json=message)
            assert answer.status_code == 200, answer.status_code

        await drive(send, wanted)


asyncio.run(main())
