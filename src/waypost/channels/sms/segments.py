"""Segments: in how many parts a text travels, and in which encoding. Pure.

Source: 3GPP TS 23.038 (the alphabet and its extension) and TS 23.040 section 9.2.3.24 (the header of concatenated
parts: 6 octets, which leaves 153 septets or 67 UCS-2 characters a part).
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Encoding = Literal["GSM-7", "UCS-2"]

BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The characters of one septet (TS 23.038 section 6.2.1)."""
EXTENDED: Final = frozenset("\f^{}\\[~]|€")
"""The characters of two septets (section 6.2.1.1)."""
_ALONE: Final = {"GSM-7": 160, "UCS-2": 70}
_PART: Final = {"GSM-7": 153, "UCS-2": 67}


class Segments(Struct, frozen=True):
    """The form in which a text travels."""

    encoding: Encoding
    units: int
    """Septets, or 16-bit units."""
    count: int
    """The number of parts, each of which is charged."""


def segments_of(text: str) -> Segments:
    """Count the parts of *text*; one character outside the alphabet makes all of it UCS-2."""
    if all(each in BASIC or each in EXTENDED for each in text):
        widths = [2 if each in EXTENDED else 1 for each in text]
        return Segments("GSM-7", sum(widths), _parts("GSM-7", widths))
    widths = [2 if ord(each) > 0xFFFF else 1 for each in text]
    return Segments("UCS-2", sum(widths), _parts("UCS-2", widths))


def _parts(encoding: Encoding, widths: list[int]) -> int:
    """Fill parts with characters of these *widths*: none is divided."""
    if sum(widths) <= _ALONE[encoding]:
        return 1 if widths else 0
    parts, used = 1, 0
    for width in widths:
        if used + width > _PART[encoding]:
            parts, used = parts + 1, 0
        used += width
    return parts
