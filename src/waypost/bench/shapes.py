"""What callers send, mixed: shapes of a notification, users in no order, and some said twice.

One notification after the other to users in turn, all alike, is what a cache likes best: a load of that kind flatters.
"""

from __future__ import annotations

from typing import Any, Final

BLOCK: Final = 50
"""Of so many that follow each other, the last says again what the one in their middle said: 2 % are duplicates."""
_AGO: Final = 25
_MASK: Final = (1 << 64) - 1

_DATA: Final = '"data":{"mark":"{n}","screen":"parcels"}'
_TITLE: Final = '"title":"Your parcel is here"'
_BODY: Final = '"body":"Number {n} was left at the front door."'
_PLAIN: Final = f"{_TITLE},{_BODY},{_DATA}"
_NO_DATA: Final = f'{_TITLE},"body":"No. {{n}} was left at the front door."'
_PICTURE: Final = f'{_PLAIN},"image":"https://img.example.com/{{n}}.jpg","link":"https://example.com/parcels/{{n}}"'
_TYPED: Final = f'{_PLAIN},"type":"parcels","category":"parcel"'
_BADGE: Final = f'{_PLAIN},"badge":3,"sound":"default","thread":"parcels"'
_KEYED: Final = f'{_PLAIN},"idempotency_key":"parcel-{{n}}"'
_LONG: Final = f'{_TITLE},"body":"Number {{n}}. {"It was left at the front door. " * 40}",{_DATA}'
_COLLAPSES: Final = f'{_PLAIN},"collapse_key":"parcel-{{n}}"'
_CRITICAL: Final = f'{_PLAIN},"urgency":"critical"'
_SILENT: Final = f'"kind":"silent",{_DATA}'

_WINDOW: Final = f'{_PLAIN},"dedup_window":3600'

SHAPES: Final = (
    *[_KEYED] * 2,
    *[_PLAIN] * 4,
    _WINDOW,
    *[_NO_DATA] * 3,
    *[_PICTURE] * 2,
    *[_TYPED] * 2,
    *[_BADGE] * 2,
    _LONG,
    _COLLAPSES,
    _CRITICAL,
    _SILENT,
)
"""The fields of a notification beside its user, ``{n}`` its number; each is as frequent as it stands here. The first is
that of what is said twice: with a key, by which it is known."""


def wishes() -> dict[str, Any]:
    """Return what a load generator is asked for."""
    return {"shapes": "\n".join(SHAPES)}


def said_by(n: int) -> int:
    """Return the number of the notification that says what the *n*-th says: its own, or an earlier one."""
    return n - _AGO if n % BLOCK == BLOCK - 1 else n


def shape_of(n: int, count: int) -> int:
    """Return which of so many shapes the notification of that number has."""
    return 0 if n % BLOCK == BLOCK - 1 - _AGO else (scattered(n) >> 32) % count


def scattered(n: int) -> int:
    """Spread numbers evenly over 64 bits: the same for the same one, and in no order (splitmix64)."""
    n = (n + 0x9E3779B97F4A7C15) & _MASK
    n = ((n ^ n >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    n = ((n ^ n >> 27) * 0x94D049BB133111EB) & _MASK
    return n ^ n >> 31


def whole(count: float) -> int:
    """Return the multiple of `BLOCK` that is nearest, one at least: so no duplicate is without what it repeats."""
    return max(1, round(count / BLOCK)) * BLOCK


def distinct(submitted: int) -> int:
    """Return how many of the first so many notifications, a multiple of `BLOCK`, are no duplicates."""
    assert submitted % BLOCK == 0, submitted
    return submitted - submitted // BLOCK
