"""Correct requests for each gateway, made with other people's libraries (PyJWT, http_ece)."""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import http_ece
import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

NID = "0199aaaa-0000-7000-8000-000000000001"
TOKEN = "ab" * 32
ANDROID = "dGVzdC1pbnN0YWxsYXRpb24:APA91b" + "x" * 120


def provider_token(
    key: bytes | str, *, iat: float | None = None, kid: str = "ABCDE12345", iss: str = "FGHIJ67890"
) -> str:
    """An APNs provider token."""
    claims = {"iss": iss, "iat": int(time.time() if iat is None else iat)}
    return jwt.encode(claims, key, algorithm="ES256", headers={"kid": kid})


class Senders:
    """Talks to one lab: every method sends a correct request, changed as the test says. A None value removes."""

    def __init__(self, client: httpx.AsyncClient, urls: Any, directory: Path) -> None:
        self.client, self.urls, self.directory = client, urls, directory
        self.apns_key = (directory / "AuthKey.p8").read_bytes()
        self.apns_token = provider_token(self.apns_key)
        self.account = json.loads((directory / "fcm.json").read_text())
        self.vapid_key = serialization.load_pem_private_key((directory / "vapid.pem").read_bytes(), None)
        self.access_token = ""

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the lab's own API and return its JSON."""
        answer = await self.client.request(method, self.urls.admin + path, json=body)
        return answer.json()

    async def apns(
        self, headers: dict[str, Any] | None = None, payload: Any = None, *, token: str = TOKEN, method: str = "POST",
        content: bytes | None = None, path: str | None = None,
    ) -> httpx.Response:  # fmt: skip
        """Send an alert."""
        merged = {
            "authorization": f"bearer {self.apns_token}", "apns-topic": "com.example.demo", "apns-push-type": "alert",
            **(headers or {}),
        }  # fmt: skip
        if payload is None:
            payload = {"aps": {"alert": {"title": "Hi"}}, "waypost_id": NID}
        return await self.client.request(
            method, self.urls.apns + (path or f"/3/device/{token}"),
            headers={name: value for name, value in merged.items() if value is not None},
            content=json.dumps(payload).encode() if content is None else content,
        )  # fmt: skip

    def assertion(self, key: str | None = None, algorithm: str = "RS256", **claims: Any) -> str:
        """A service account's assertion."""
        now = int(time.time())
        merged = {
            "iss": self.account["client_email"], "scope": "https://www.googleapis.com/auth/firebase.messaging",
            "aud": self.account["token_uri"], "iat": now, "exp": now + 3600, **claims,
        }  # fmt: skip
        return jwt.encode(merged, key or self.account["private_key"], algorithm=algorithm)

    async def oauth(self, form: dict[str, str] | None = None, **claims: Any) -> httpx.Response:
        """Ask for an access token."""
        merged = {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": self.assertion(**claims),
            **(form or {}),
        }  # fmt: skip
        return await self.client.post(self.urls.oauth, data=merged)

    async def fcm(
        self, message: dict[str, Any] | None = None, headers: dict[str, Any] | None = None, *,
        project: str = "lab-project", **body: Any,
    ) -> httpx.Response:  # fmt: skip
        """Send a message; *message* is merged into a correct one."""
        if not self.access_token:
            self.access_token = (await self.oauth()).json()["access_token"]
        merged = {"token": ANDROID, "data": {"waypost_id": NID}, **(message or {})}
        sent = {"authorization": f"Bearer {self.access_token}", "content-type": "application/json", **(headers or {})}
        return await self.client.post(
            f"{self.urls.fcm}/v1/projects/{project}/messages:send",
            headers={name: value for name, value in sent.items() if value is not None},
            content=json.dumps({"message": {k: v for k, v in merged.items() if v is not None}, **body}).encode(),
        )

    async def subscription(self, **wanted: Any) -> dict[str, Any]:
        """A new browser subscription."""
        made: dict[str, Any] = await self.admin("POST", "/subscriptions", wanted)
        return made

    def vapid(self, key: Any = None, **claims: Any) -> str:
        """An RFC 8292 authorization header."""
        key = key or self.vapid_key
        merged = {
            "aud": self.urls.webpush, "exp": int(time.time()) + 3600, "sub": "mailto:ops@example.com", **claims
        }  # fmt: skip
        token = jwt.encode({k: v for k, v in merged.items() if v is not None}, key, algorithm="ES256")
        return f"vapid t={token}, k={base64url(point(key))}"

    def encrypted(self, subscription: dict[str, Any], plaintext: bytes, key: Any = None) -> bytes:
        """An aes128gcm body."""
        sealed: bytes = http_ece.encrypt(
            plaintext, private_key=key or ec.generate_private_key(ec.SECP256R1()), salt=os.urandom(16),
            dh=_decoded(subscription["keys"]["p256dh"]), auth_secret=_decoded(subscription["keys"]["auth"]),
            version="aes128gcm",
        )  # fmt: skip
        return sealed

    async def webpush(
        self, subscription: dict[str, Any], headers: Any = None, *, body: bytes | None = None, method: str = "POST"
    ) -> httpx.Response:
        """Send an encrypted message."""
        merged = {
            "authorization": self.vapid(), "ttl": "60", "content-encoding": "aes128gcm", **dict(headers or {})
        }  # fmt: skip
        plaintext = json.dumps({"waypost_id": NID, "title": "Hi"}).encode()
        return await self.client.request(
            method, subscription["endpoint"],
            headers={name: value for name, value in merged.items() if value is not None},
            content=self.encrypted(subscription, plaintext) if body is None else body,
        )  # fmt: skip


def point(key: Any) -> bytes:
    """The uncompressed public point of a private key."""
    uncompressed: bytes = key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    return uncompressed


def base64url(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
