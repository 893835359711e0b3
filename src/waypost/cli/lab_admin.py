"""The lab's admin API, as far as the demonstration needs it."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]


class LabAdmin:
    """A client of the lab that makes devices and tells what arrived; plain HTTP on loopback."""

    def __init__(self, url: str) -> None:
        self._netloc = urlsplit(url).netloc

    def token(self, platform: str) -> str:
        """Create a device and return its token."""
        tokens = self._ask("POST", "/tokens", {"platform": platform})["tokens"]
        return str(tokens[0])

    def subscription(self) -> Json:
        """Create a browser's push subscription, as ``PushSubscription.toJSON()`` has it."""
        return self._ask("POST", "/subscriptions", {})

    def received(self, notification_id: str) -> list[Json]:
        """List every request about a notification, judged, in the order they came; payloads are decrypted."""
        found: list[Json] = self._ask("GET", f"/received?notification_id={notification_id}")["received"]
        return found

    def verify(self, notification_id: str, tokens: list[str]) -> Json:
        """Check that a notification reached exactly these devices, once."""
        return self._ask("POST", "/verify", {"expected": [{"notification_id": notification_id, "tokens": tokens}]})

    def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        connection = http.client.HTTPConnection(self._netloc, timeout=10.0)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            answer: Json = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            raise RuntimeError(f"the lab refused {method} {path}: {answer.get('error')}")
        return answer
