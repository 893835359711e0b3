"""HTML of e-mail: styles come inline, since many readers of mail pass over others; and the text made of it."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from typing import Final

import css_inline

_BLOCKS: Final = frozenset(
    {
        *("address", "article", "blockquote", "div", "dl", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("header", "hr", "ol", "p", "pre", "section", "table", "ul"),
    }
)
_LINES: Final = frozenset({"br", "dt", "dd", "li", "tr"})
_UNSEEN: Final = frozenset({"head", "script", "style", "template", "title"})
_SPACES: Final = re.compile(r"[ \t\r\n\f]+")


def inlined(html: str) -> str:
    """Put the rules of style sheets in *html* into the elements; what cannot be there, such as media queries, stays.

    Nothing is fetched, and no file is read.
    """
    return _inliner().inline(html) if "<style" in html.lower() else html


def text_of(html: str) -> str:
    """Return what a reader sees of *html*, as plain text: paragraphs, list items with dashes, links in brackets."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


@cache
def _inliner() -> css_inline.CSSInliner:
    return css_inline.CSSInliner(load_remote_stylesheets=False, keep_at_rules=True, cache=None)


class _Reader(HTMLParser):
    """A reader of the text by the elements that it stands in."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._made: list[str] = []
        self._unseen = 0
        self._links: list[tuple[str, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag in _BLOCKS:
            self._made.append("\n\n")
        elif tag in _LINES:
            self._made.append("\n- " if tag == "li" else "\n")
        elif tag in {"td", "th"}:
            self._made.append(" ")
        elif tag == "img" and given.get("alt") and not self._unseen:
            self._made.append(given["alt"] or "")
        elif tag == "a":
            self._links.append((given.get("href") or "", len(self._made)))

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag in _BLOCKS:
            self._made.append("\n\n")
        elif tag == "a" and self._links:
            href, begun = self._links.pop()
            said = "".join(self._made[begun:]).strip()
            if href and not href.startswith("#") and href not in (said, f"mailto:{said}"):
                self._made.append(f" ({href})")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._made.append(_SPACES.sub(" ", data))

    def text(self) -> str:
        """Return the lines, with at most one empty line between two."""
        lines = [" ".join(line.split()) for line in "".join(self._made).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
