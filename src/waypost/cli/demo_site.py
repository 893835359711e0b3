"""The site of ``waypost demo``: a page with the inbox in it, and a backend that logs its one user in and sends."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import jwt

ISSUER: Final = "https://shop.example"
AUDIENCE: Final = "waypost"
TOKEN_S: Final = 600
BODY_LIMIT: Final = 65_536
_PAGES: Final = Path(__file__).parent / "demo_page"
_TYPES: Final = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css",
    "page.js": "text/javascript",
}
_POLICY: Final = "default-src 'self'; script-src 'self' {url}; connect-src 'self' {url} {live}; img-src * data:"

Send = Callable[[dict[str, Any]], str]
"""Sends what the form says to the user; returns the id."""


class DemoSite:
    """A web server on the loopback, whose origin is known before Waypost starts."""

    def __init__(self, user: str) -> None:
        """Listen; nothing is answered before `start`."""
        self._user = user
        self._secret = secrets.token_hex(32)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self.origins = [self.origin, f"http://localhost:{self._server.server_port}"]

    def issuer(self, folder: Path) -> dict[str, Any]:
        """Build the setting by which Waypost believes the site's tokens; the secret is in a file of its own."""
        path = folder / "site.secret"
        path.touch(0o600)
        path.write_text(self._secret)
        settings = {"issuer": ISSUER, "audience": AUDIENCE, "algorithms": ["HS256"], "secret": f"file:{path}"}
        return settings | {"users": True, "scopes": ["read", "devices"]}

    def start(self, url: str, send: Send) -> None:
        """Answer in a thread; *url* is Waypost's."""
        self._server.session = {"url": url, "user": self._user}
        self._server.send = send
        self._server.token = self._token
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _token(self) -> str:
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": self._user, "iat": now, "exp": now + TOKEN_S}
        return jwt.encode(claims, self._secret, "HS256")


class _Server(ThreadingHTTPServer):
    """The server, with what its answers are made of."""

    daemon_threads = True
    session: dict[str, str]
    send: Send
    token: Callable[[], str]


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server

    def do_GET(self) -> None:
        """Hand out the page, who is logged in, and a token."""
        path = self.path.partition("?")[0]
        name = path.removeprefix("/") or "index.html"
        if path == "/session":
            self._answer(200, "application/json", json.dumps(self.server.session))
        elif path == "/token" and self._is_local():
            self._answer(200, "text/plain", self.server.token())
        elif name in _TYPES:
            self._answer(200, _TYPES[name], (_PAGES / name).read_text(encoding="utf-8"))
        else:
            self._answer(404, "text/plain", "no such page")

    def do_POST(self) -> None:
        """Send what the form says."""
        length = int(self.headers.get("content-length", 0))
        is_form = self.path == "/send" and self.headers.get("content-type") == "application/json"
        if not is_form or length > BODY_LIMIT or not self._is_local():
            self._answer(404, "text/plain", "no such page")
            return
        try:
            answer = {"id": self.server.send(json.loads(self.rfile.read(length)))}
        except Exception as error:  # noqa: BLE001 - whatever it is, the page says it
            answer = {"error": str(error)}
        self._answer(200, "application/json", json.dumps(answer))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the demonstration's."""

    def _is_local(self) -> bool:
        """Tell whether it was asked by an address of this machine, and not by a name of somebody's that leads here."""
        return self.headers.get("host", "").partition(":")[0] in ("127.0.0.1", "localhost")

    def _answer(self, status: int, media_type: str, text: str) -> None:
        url = self.server.session["url"]
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(text.encode())))
        self.send_header("content-security-policy", _POLICY.format(url=url, live=url.replace("http", "ws", 1)))
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(text.encode())
