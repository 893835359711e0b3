"""The site of the demonstration gives its token and sends for who asks it by an address of this machine alone."""

from __future__ import annotations

from http.client import HTTPConnection
from typing import Any

import pytest

from waypost.cli.demo_site import DemoSite


def answered(site: DemoSite, method: str, path: str, host: str) -> int:
    """The status of a request that names *host*, as a browser does after its name was made to lead here."""
    connection = HTTPConnection(site.origin.removeprefix("http://"), timeout=30)
    headers = {"Host": host, "Content-Type": "application/json"}
    connection.request(method, path, "{}" if method == "POST" else None, headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize(("method", "path"), [("GET", "/token"), ("POST", "/send")])
@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("localhost:80", 200), ("evil.example", 404)])
def test_who_comes_by_another_name_gets_nothing(method: str, path: str, host: str, status: int) -> None:
    def send(_form: dict[str, Any]) -> str:
        return "id"

    site = DemoSite("user-1")
    site.start("http://127.0.0.1:1", send)
    assert answered(site, method, path, host) == status
