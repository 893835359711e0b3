"""Templates: what messages say, in versions that never change once they are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.content import TemplateUse
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId
from waypost.domain.submission import Submission
from waypost.domain.template import TemplateContent, Version
from waypost.domain.time import Instant

Wanted = tuple[str, int | None]
"""A template by its name, in a version; None is the published one."""


class TemplateRecord(Struct, frozen=True):
    """A template: which of its versions is published, and which is being worked on."""

    name: str
    published: int | None
    draft: int | None
    retired_at: Instant | None


class VersionRecord(Struct, frozen=True):
    """A version without its content."""

    number: int
    created_at: Instant
    published_at: Instant | None


class Templates(Protocol):
    """The templates of all apps."""

    async def put(self, app: AppId, name: str, content: TemplateContent, now: Instant) -> int:
        """Write a new version as the draft, in place of the draft before; return its number, which none had before."""
        ...

    async def publish(self, app: AppId, name: str, number: int, now: Instant) -> bool:
        """Have submissions from now on say this version, also an older one again; False where there is none."""
        ...

    async def retire(self, app: AppId, name: str, now: Instant) -> bool:
        """Refuse submissions that name it, until a version is published; what was accepted is said as it was.

        False where there is no such template.
        """
        ...

    async def list(self, app: AppId, after: str, n: int) -> list[TemplateRecord]:
        """Return at most *n* templates whose names come after *after*, by name."""
        ...

    async def show(self, app: AppId, name: str) -> TemplateRecord | None:
        """Return a template; None where there is none."""
        ...

    async def versions(self, app: AppId, name: str) -> Sequence[VersionRecord]:
        """Return the published versions and the draft, newest first."""
        ...

    async def chosen(self, app: AppId, wanted: Collection[Wanted]) -> Mapping[Wanted, Version]:
        """Return what submissions may say now: the published version, or the one named; a retired template has none.

        What was published or retired before this is asked counts.
        """
        ...

    async def of(self, app: AppId, wanted: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], Version]:
        """Return versions by name and number, whatever became of their templates."""
        ...


Said = TemplateUse | InvalidRequest | None
"""What a submission says by a template, why it cannot, or that it names none."""


class TemplateChoice(Protocol):
    """The choice of the version that a submission says."""

    async def chosen(self, app: AppId, submissions: Sequence[Submission]) -> list[Said]:
        """Choose for each of *submissions*; those that name no template cost nothing."""
        ...
