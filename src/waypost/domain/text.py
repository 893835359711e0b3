"""Text without what nobody can see."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

NO_NUL = r"^[^\x00]*$"
"""PostgreSQL stores every character in a text but this one (manual, section 8.3)."""
LONGEST = 128
FORM = "form"
"""The key under which a text's type says in words which form it must have (msgspec's ``Meta.extra``)."""

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST, pattern=NO_NUL)]
"""A text that a store keeps in a column, or looks for in one."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""The control characters of Unicode (category Cc) but for tab and line feed."""
_BREAKS = re.compile(r"[\t\n]+")


def cleaned(text: str) -> str:
    """Remove control characters (but tabs and line feeds) from *text*, and white space around it."""
    return _CONTROLS.sub("", text).strip()


def cleaned_line(text: str) -> str:
    """Clean *text* and turn its line breaks into spaces."""
    return _BREAKS.sub(" ", cleaned(text))
