"""An origin from an account's settings, and what ``:authority`` says for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import Authority
from waypost.channels.push.origin import authority_of, origin_of, own_trust, trust
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


def test_who_trusts_the_same_shares_a_context(tmp_path: Path) -> None:
    """Until the file changes; not with another protocol, which it offers, and not with who adds a certificate."""
    first, second = (Authority(tmp_path, name).file for name in ("first", "second"))
    file = tmp_path / "ca.pem"
    file.write_bytes(first.read_bytes())
    shared = trust("apps.one.apns", str(file))
    assert origin_of("apps.two.apns", "https://host", str(file)).tls is shared
    others = [trust("apps.one.fcm", str(file), "http/1.1"), own_trust("apps.one.apns", str(file))]
    file.write_bytes(second.read_bytes())
    others += [trust("apps.one.apns", str(file)), own_trust("apps.one.apns", str(file))]
    assert len({id(each) for each in (shared, *others)}) == 5
    assert [each.get_ca_certs() == shared.get_ca_certs() for each in others] == [True, True, False, False]
