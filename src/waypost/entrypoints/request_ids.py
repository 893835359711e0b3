"""Ids of requests: the caller's own, or one made here; it stands in every answer and in what is logged of a failure."""

from __future__ import annotations

import re
import secrets
from itertools import count
from typing import Final

HEADER: Final = "x-request-id"
_SANE: Final = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}")
_PROCESS: Final = secrets.token_hex(6)
_NUMBERS: Final = count(1)


def request_id(given: str | None) -> str:
    """Return the id that the caller gave, unless it is too long or holds what an id does not; else a new one."""
    if given is not None and _SANE.fullmatch(given):
        return given
    return f"{_PROCESS}-{next(_NUMBERS)}"
