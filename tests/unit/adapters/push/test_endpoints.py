"""Where a subscription may point."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.channels.push.addresses import AllowedRange
from waypost.channels.push.endpoints import EndpointGuard, take_apart
from waypost.channels.webpush.settings import KNOWN_SERVICES
from waypost.domain.errors import ConfigurationError


def guard(*allowed: str) -> EndpointGuard:
    return EndpointGuard("apps.demo.webpush", allowed or KNOWN_SERVICES)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://fcm.googleapis.com/fcm/send/abc:DEF", "https://fcm.googleapis.com"),
        ("https://updates.push.services.mozilla.com/wpush/v2/gAAA", "https://updates.push.services.mozilla.com"),
        ("https://wns2-par02p.notify.windows.com/w/?token=BQ%2b%3d", "https://wns2-par02p.notify.windows.com"),
        ("https://web.push.apple.com/QGuQ", "https://web.push.apple.com"),
        ("https://FCM.googleapis.com:443/wp/x", "https://fcm.googleapis.com"),
    ],
)
def test_the_browsers_services_are_allowed(url: str, origin: str) -> None:
    endpoint = guard().admit(url)
    assert endpoint is not None
    assert endpoint.origin == origin
    assert url.endswith(endpoint.path)


APIS = [
    "https://api.push.apple.com/3/device/00",
    "https://API.push.apple.com./3/device/00",
    "https://api.sandbox.push.apple.com/3/device/00",
    "https://api.development.push.apple.com/x",
    "https://api-broadcast.push.apple.com/4/broadcasts/apps/x",
    "https://api-manage-broadcast.sandbox.push.apple.com/1/apps/x",
    "https://fcm.googleapis.com/v1/projects/x/messages:send",
    "https://fcm.googleapis.com./v1/projects/x/messages:send",
    "https://fcm.googleapis.com//v1/projects/x/messages:send",
    "https://fcm.googleapis.com/%761/projects/x/messages:send",
    "https://fcm.googleapis.com/wp/../v1/projects/x/messages:send",
    "https://fcm.googleapis.com/fcm/send",
    "https://fcm.googleapis.com/batch",
    "https://fcm.googleapis.com",
    "https://fcm.mtls.googleapis.com/v1/projects/x/messages:send",
    "https://iid.googleapis.com/iid/v1:batchAdd",
    "https://oauth2.googleapis.com/token",
]
"""Where APNs and FCM are spoken to by senders."""


@pytest.mark.parametrize("url", APIS)
@pytest.mark.parametrize("allowed", [KNOWN_SERVICES, ("*",)])
def test_the_apis_of_other_providers_are_no_push_services(url: str, allowed: tuple[str, ...]) -> None:
    """Their 401 or 403 would be taken for a word on the VAPID identity, and stop every subscription."""
    assert guard(*allowed).admit(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://fcm.googleapis.com/wp/x",
        "https://fcm.googleapis.com.evil.example/x",
        "https://evilfcm.googleapis.com/x",
        "https://push.apple.com/x",
        "https://evilpush.apple.com/x",
        "https://fcm.googleapis.com@evil.example/x",
        "https://user:pw@fcm.googleapis.com/x",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com:99999/x",
        "https://fcm.googleapis.com:0/x",
        "https://fcm.googleapis.com\\@evil.example/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://fcm.googleapis.com/x#fragment",
        "http\u017f://fcm.googleapis.com/x",  # a long s, which is an s in another case
        "https://\u212a.push.apple.com/x",  # a Kelvin sign, which is a k
        "https://fcm.googleapis.com/wp/\u212a",
        "https://fcm.googleapis.com/x y",
        "https://fcm.googleapis.com/x\r\nh: v",
        "https://fcm.googleapis.com/ü",
        "https://",
        "",
    ],
)
def test_anything_else_is_not(url: str) -> None:
    assert guard().admit(url) is None


def test_a_url_allows_its_origin_and_what_is_under_its_path() -> None:
    ours = guard("https://127.0.0.1:2199", "https://[::1]:99/push/")
    assert ours.admit("https://127.0.0.1:2199/anything") is not None
    assert ours.admit("https://127.0.0.1:2198/anything") is None
    assert ours.admit("https://127.0.0.1.evil.example:2199/anything") is None
    inner = ours.admit("https://[::1]:99/push/a")
    assert inner is not None
    assert (inner.host, inner.authority) == ("::1", "[::1]:99")
    assert ours.admit("https://[::1]:99/other") is None


@pytest.mark.parametrize(
    ("path", "admitted"),
    [
        ("/up", True),
        ("/up/", True),
        ("/up/a", True),
        ("/up?x=1", True),
        ("/upstream", False),
        ("/up-admin/a", False),
        ("/up/../admin", False),
        ("/up/%2E%2e/admin", False),
        ("/up/..", False),
        ("/up/a..b", True),
    ],
)
def test_a_path_allows_whole_segments_under_it(path: str, admitted: bool) -> None:
    guard = EndpointGuard("apps.demo.webpush", ("https://push.example/up",))
    assert (guard.admit(f"https://push.example{path}") is not None) is admitted


def test_a_star_allows_any_host_of_the_internet_by_https() -> None:
    """UnifiedPush: the user brings the push service."""
    everybody = guard("*")
    assert everybody.admit("https://ntfy.example.com/upABCDEFGHIJKL?up=1") is not None
    for url in (
        "http://ntfy.example.com/up",
        "https://10.0.0.1/up",
        "https://[::1]/up",
        "https://ntfy.example.com:8443/",
    ):
        assert everybody.admit(url) is None


@pytest.mark.parametrize("allowed", [("*", "fcm.googleapis.com"), ("fcm.googleapis.com", "*")])
def test_a_named_host_is_known_as_such_wherever_the_star_stands(allowed: tuple[str, str]) -> None:
    for host, named in (("fcm.googleapis.com", True), ("ntfy.example.com", False)):
        endpoint = guard(*allowed).admit(f"https://{host}/wp/x")
        assert endpoint is not None
        assert endpoint.named is named


def test_a_plain_url_allows_a_private_origin_without_tls() -> None:
    ours = guard("http://127.0.0.1:8080/push/", "http://push.lan")
    endpoint = ours.admit("http://127.0.0.1:8080/push/a")
    assert endpoint is not None
    assert (endpoint.origin, endpoint.authority, endpoint.reach) == (
        "http://127.0.0.1:8080",
        "127.0.0.1:8080",
        AllowedRange.PRIVATE,
    )
    assert ours.admit("https://127.0.0.1:8080/push/a") is None
    by_name = ours.admit("http://push.lan:80/x")
    assert by_name is not None
    assert by_name.origin == "http://push.lan"


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1/x"),
        ("169.254.169.254", "https://169.254.169.254/latest"),
        ("http://93.184.215.14", "http://93.184.215.14/x"),
    ],
    ids=["a host must be public", "metadata of a cloud", "without TLS it must be private"],
)
def test_an_address_out_of_reach_is_refused_though_the_list_names_it(entry: str, url: str) -> None:
    assert guard(entry).admit(url) is None


@pytest.mark.parametrize("entry", ["", "**", "ftp://x", "a b", "https://", "*.*.x", "x/y", "https://u@h"])
def test_an_entry_that_means_nothing_names_its_place(entry: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        guard("fcm.googleapis.com", entry)
    assert caught.value.path == "apps.demo.webpush.allow_endpoints[1]"


@given(st.text())
def test_no_text_breaks_it_and_only_a_url_is_taken_apart(text: str) -> None:
    endpoint = take_apart(text)
    assert endpoint is None or endpoint.origin.startswith(("https://", "http://"))


SEEN = [
    f"{origin}{path}"
    for origin in (
        "https://push.example",
        "https://PUSH.example:443",
        "https://push.example:8443",
        "http://push.example",
        "https://a.push.example",
        "https://10.0.0.1",
        "https://10.0.0.2",
        "https://fcm.googleapis.com",
        "https://push.example:0",
    )
    for path in ("", "/", "/up", "/up/a", "/up/../b", "/wp/x")
]


@given(st.permutations(SEEN))
def test_what_was_asked_before_changes_no_answer(urls: list[str]) -> None:
    """An origin is remembered, not the answer to one of its paths."""
    allowed = ("https://push.example/up", "*.push.example", "10.0.0.1", "https://10.0.0.1", "https://10.0.0.2", "*")
    used = guard(*allowed)
    for url in urls:
        assert used.admit(url) == guard(*allowed).admit(url)


def test_the_origins_of_strangers_are_not_remembered_without_end() -> None:
    used = guard("*")
    for n in range(1_000):
        assert used.admit(f"https://push{n}.example/x") is not None
    assert len(used._of_origins) <= 256
