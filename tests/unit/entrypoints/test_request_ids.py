"""Ids of requests: the caller's where it is one, else one of ours that is nobody else's."""

import pytest

from waypost.entrypoints.request_ids import request_id


@pytest.mark.parametrize("given", ["abc-1", "0af7651916cd43dd8448eb211c80319c", "Root=1-67891233-abcdef", "x" * 128])
def test_the_callers_own_is_kept(given: str) -> None:
    """As proxies and clients make them."""
    assert request_id(given) == given


@pytest.mark.parametrize("given", [None, "", "x" * 129, "two words", "a\r\nset-cookie: b", "é", "a,b"])
def test_what_is_none_is_replaced(given: str | None) -> None:
    """By another each time; nothing of it comes back."""
    first, second = request_id(given), request_id(given)
    assert first != second
    assert given is None or given == "" or given not in first
