"""Price classes: what the price of a segment depends on, which is the country that it goes to. Pure.

Source: ITU-T E.164, "List of assigned country codes": codes of one digit (1 and 7), these of two, all others of three.
"""

from __future__ import annotations

import re
from typing import Final

_OF_ONE: Final = frozenset("17")
_OF_TWO: Final = re.compile(r"2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]")


def country_code(number: str) -> str:
    """Return the country code of a *number* in the form of E.164, such as ``+49``."""
    digits = number[1:]
    size = 1 if digits[:1] in _OF_ONE else 2 if _OF_TWO.match(digits) else 3
    return f"+{digits[:size]}"


def price_class(segments: int, number: str) -> str:
    """Say what a message of so many *segments* to *number* costs, in segments of its country."""
    return f"{segments} {'segment' if segments == 1 else 'segments'} to {country_code(number)}"
