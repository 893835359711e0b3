"""A proxy from its URL."""

import pytest

from waypost.http2 import Proxy, proxy_of


def test_an_http_url_is_a_proxy_and_its_login_is_not_shown() -> None:
    assert proxy_of("http://proxy.test:3128") == Proxy("proxy.test", 3128)
    assert proxy_of("http://[::1]/") == Proxy("::1", 80)
    proxy = proxy_of("http://me:p%40ss@proxy.test:3128")
    assert proxy == Proxy("proxy.test", 3128, "Basic bWU6cEBzcw==")
    assert "bWU6" not in repr(proxy)


@pytest.mark.parametrize("url", ["https://p:1", "p:3128", "", "http://", "http://p/path", "http://p?q", "socks5://p:1"])
def test_anything_else_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match="must be http"):
        proxy_of(url)
