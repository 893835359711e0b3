"""An origin from its URL, and what ``:authority`` says for it."""

from __future__ import annotations

import ssl

import pytest

from waypost.http2 import Origin
from waypost.http2.endpoint import authority_of, origin_of

TLS = ssl.create_default_context()


@pytest.mark.parametrize(
    ("url", "origin", "authority"),
    [
        ("https://api.push.apple.com", Origin("api.push.apple.com", 443, TLS), b"api.push.apple.com"),
        ("https://127.0.0.1:2197/", Origin("127.0.0.1", 2197, TLS), b"127.0.0.1:2197"),
        ("https://[::1]:99", Origin("::1", 99, TLS), b"[::1]:99"),
        ("https://host:443", Origin("host", 443, TLS), b"host"),
    ],
)
def test_an_https_url_is_an_origin(url: str, origin: Origin, authority: bytes) -> None:
    assert origin_of(url, TLS) == origin
    assert authority_of(origin) == authority


@pytest.mark.parametrize(
    "url", ["http://host", "host:443", "", "https://", "https://h/path", "https://h?q", "https://u@h", "https://h:x"]
)
def test_anything_else_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        origin_of(url, TLS)
