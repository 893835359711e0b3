"""Variants: what is said to one part of the users and not to another, and who is in which part. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

HOLDOUT: Final = "holdout"
"""The variant of users who are told nothing, so that their conduct shows what telling the others did."""
VARIANT: Final = "variant of the content"
"""The name under which a recipient's variant lies among the variables; no placeholder can have such a name."""
VARIANTS_LIMIT: Final = 8
WEIGHT_LIMIT: Final = 1_000
HOLDOUT_LIMIT: Final = 90
"""The most percent of the users that may be held out."""
_SPAN: Final = float(1 << 64)


class Variant(Struct, frozen=True, omit_defaults=True):
    """A variant: the texts that it has in place of those of the content, and its share of the users."""

    name: str
    weight: int = 1
    title: str | None = None
    subtitle: str | None = None
    body: str | None = None
    image: str | None = None
    icon: str | None = None
    link: str | None = None


VARIED: Final = ("title", "subtitle", "body", "image", "icon", "link")
"""The fields of the content that a variant may replace."""


class Split(Struct, frozen=True, omit_defaults=True):
    """The split of the users of one campaign among its variants."""

    variants: tuple[Variant, ...]
    holdout: int = 0
    """Percent of the users who are told nothing."""

    @property
    def shares(self) -> dict[str, float]:
        """The expected share of each variant among those who are told something."""
        total = sum(each.weight for each in self.variants)
        return {each.name: each.weight / total for each in self.variants}


class Part(Struct, frozen=True):
    """A part of all users, drawn by chance: those from *after* up to *until* percent."""

    salt: str
    after: int
    until: int

    def has(self, user_id: str) -> bool:
        """Tell whether a user is in it; each is in exactly one of the parts that bounds cut."""
        return self.after <= place_of(self.salt, user_id) * 100 < self.until


def place_of(salt: str, user_id: str) -> float:
    """Draw the place of a user among all, from 0 up to 1."""
    return _drawn("part", salt, user_id)[0]


def variant_for(split: Split, campaign: str, user_id: str) -> str:
    """Choose the variant of one user, the same each time: it follows from *campaign* and user alone.

    Whether somebody is held out and which variant they have are drawn apart: a larger holdout moves nobody from one
    variant to another.
    """
    out, place = _drawn("split", campaign, user_id)
    if out * 100 < split.holdout:
        return HOLDOUT
    return _at(split.variants, place)


def _at(variants: Sequence[Variant], place: float) -> str:
    left = place * sum(each.weight for each in variants)
    for each in variants:
        left -= each.weight
        if left < 0:
            return each.name
    return variants[-1].name


def _drawn(use: str, salt: str, user_id: str) -> tuple[float, float]:
    """Draw two numbers from 0 up to 1 from a hash: as good as chance, and the same for ever."""
    key = hashlib.blake2b(salt.encode(), digest_size=32, person=use.encode()).digest()
    digest = hashlib.blake2b(user_id.encode(), digest_size=16, key=key).digest()
    return int.from_bytes(digest[:8], "big") / _SPAN, int.from_bytes(digest[8:], "big") / _SPAN
