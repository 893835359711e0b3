"""An origin from an account's settings, and what ``:authority`` says for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from waypost.adapters.push.origin import authority_of, origin_of, trust
from waypost.domain.errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("https://api.push.apple.com", "api.push.apple.com", 443, "api.push.apple.com"),
        ("https://127.0.0.1:2197/", "127.0.0.1", 2197, "127.0.0.1:2197"),
        ("https://[::1]:99", "::1", 99, "[::1]:99"),
        ("https://host:443", "host", 443, "host"),
    ],
)
def test_an_https_url_is_an_origin(url: str, host: str, port: int, authority: str) -> None:
    origin = origin_of("apps.demo.apns", url, None)
    assert (origin.host, origin.port) == (host, port)
    assert authority_of(origin) == authority


@pytest.mark.parametrize(
    "url", ["http://host", "host:443", "", "https://", "https://h/path", "https://h?q", "https://u@h", "https://h:x"]
)
def test_anything_else_names_the_setting(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        origin_of("apps.demo.apns", url, None)
    assert caught.value.path == "apps.demo.apns.endpoint"


@pytest.mark.parametrize("content", [b"no certificate", None])
def test_authorities_that_cannot_be_read_name_the_setting(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        trust("apps.demo.fcm", str(file))
    assert caught.value.path == "apps.demo.fcm.ca_file"
