"""Shortening: how a message is made to fit its provider's limit, where the app allows it.

Only what is read by a person is shortened, and never in the middle of what a person sees as one character (an extended
grapheme cluster, Unicode UAX 29): data, links and identifiers are the app's, and half of one is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import regex
from msgspec.structs import replace

from waypost.domain.content import Content

Fit = Literal["refuse", "trim"]
"""The treatment of a payload over the limit (``apps.<app>.<channel>.fit``)."""

TRIMMABLE: Final = ("body", "subtitle", "title")
"""The fields of the content that may be shortened, the first one first."""
ELLIPSIS: Final = "…"

_grapheme = regex.compile(r"\X")


def fitted(content: Content, size_of: Callable[[Content], int], limit_bytes: int) -> Content | None:
    """Shorten *content* as little as its fields allow; None where even that is too large.

    *size_of* renders a content and says its size in the provider's own bytes, so that escapes and fields that appear
    twice count as they do there. A field is shortened down to the ellipsis before the next one is touched.
    """
    if size_of(content) <= limit_bytes:
        return content
    for field in TRIMMABLE:
        text = getattr(content, field)
        if not text:
            continue
        shortest = replace(content, **{field: ELLIPSIS})
        size_bytes = size_of(shortest)
        if size_bytes <= limit_bytes:
            return _longest(content, field, text, size_of, limit_bytes)
        if size_bytes < size_of(content):
            content = shortest
    return None


def _longest(content: Content, field: str, text: str, size_of: Callable[[Content], int], limit_bytes: int) -> Content:
    """Return *content* with as many graphemes of *field* as fit; none of them and the ellipsis are known to."""
    ends = [match.end() for match in _grapheme.finditer(text)]
    fits, too_many = 0, len(ends)
    best = replace(content, **{field: ELLIPSIS})
    while too_many - fits > 1:
        count = (fits + too_many) // 2
        tried = replace(content, **{field: text[: ends[count - 1]].rstrip() + ELLIPSIS})
        if size_of(tried) <= limit_bytes:
            fits, best = count, tried
        else:
            too_many = count
    return best
