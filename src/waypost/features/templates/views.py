"""The shapes of templates in the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from waypost.channels.email.settings import CHANNEL as EMAIL
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.settlement import Dead
from waypost.domain.submission import Locale, TemplateName
from waypost.domain.template import TemplateContent
from waypost.domain.text import NO_NUL
from waypost.domain.time import isoformat
from waypost.entrypoints.rest.explain_routes import FailureView, RenderedView, rendered_view
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.features.templates.preview import Shown
from waypost.ports.templates import TemplateRecord, VersionRecord

Number = Annotated[int, Meta(ge=1)]


class TemplateSummary(Struct, frozen=True):
    """A template."""

    name: TemplateName
    published: Annotated[int | None, Meta(description="The version that submissions say now.")]
    draft: Annotated[int | None, Meta(description="The version that is being worked on.")]
    retired_at: Annotated[Timestamp | None, Meta(description="Since then submissions that name it are refused.")]


class TemplatePage(Struct, frozen=True):
    """Templates by name."""

    items: tuple[TemplateSummary, ...]
    next: Cursor


class TemplateView(Struct, frozen=True):
    """A version of a template."""

    name: TemplateName
    version: int
    state: Annotated[
        Literal["draft", "published", "superseded", "retired"],
        Meta(description="Superseded: another version is published."),
    ]
    content: TemplateContent


class VersionView(Struct, frozen=True):
    """A version without its content."""

    version: int
    created_at: Timestamp
    published_at: Annotated[Timestamp | None, Meta(description="When it was first published; null for the draft.")]


class VersionList(Struct, frozen=True):
    """The versions of a template, newest first."""

    items: tuple[VersionView, ...]


class SavedDraft(Struct, frozen=True):
    """A draft that was written."""

    name: TemplateName
    version: int


class Publishing(Struct, frozen=True, forbid_unknown_fields=True):
    """The version to publish."""

    version: Annotated[Number | None, Meta(description="Omitted: the draft. An older one is published again.")] = None


class PreviewRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The version to show, and for whom."""

    version: Annotated[Number | None, Meta(description="Omitted: the draft, or the published version.")] = None
    variables: Annotated[dict[str, Any], Meta(description="Omitted ones take their example, or their default.")] = {}
    locale: Annotated[Locale | None, Meta(description="Omitted: the template's default.")] = None
    time_zone: Annotated[
        Annotated[str, Meta(max_length=64, pattern=NO_NUL)] | None,
        Meta(description="Of dates and times. Omitted: UTC."),
    ] = None


class PreviewItem(Struct, frozen=True):
    """One platform with what it would be sent."""

    platform: Annotated[str, Meta(examples=["ios"])]
    channel: Channel
    texts: Annotated[dict[str, str] | None, Meta(description="What the template says.")]
    fails: Annotated[FailureView | None, Meta(description="The reason why it says nothing.")]
    rendered: Annotated[RenderedView | None, Meta(description="The request; null where the app has no account there.")]
    segments: Annotated[int | None, Meta(description="Of a text message: the segments that it travels in.")]


class PreviewView(Struct, frozen=True):
    """A version as each platform would be sent it."""

    name: TemplateName
    version: int
    items: tuple[PreviewItem, ...]


def preview_item(shown: Shown) -> PreviewItem:
    """Show what one platform would be sent."""
    rendered = None if shown.rendered is None else rendered_view(shown.rendered)
    if isinstance(shown.said, Dead):
        fails = FailureView(shown.said.code, shown.said.why)
        return PreviewItem(shown.platform, shown.channel, None, fails, None, None)
    segments = None if rendered is None else rendered.headers.get("x-segments")
    texts = texts_of(shown.said)
    return PreviewItem(
        shown.platform, shown.channel, texts, None, rendered, None if segments is None else int(segments)
    )


def texts_of(content: Content) -> dict[str, str]:
    """Return what *content* says in words; of an e-mail what only it has, too."""
    named = {name: getattr(content, name) for name in ("title", "subtitle", "body", "image", "icon", "link")}
    mail = content.overrides.get(EMAIL, {})
    return {name: text for name, text in {**named, **mail}.items() if text is not None}


def summary(record: TemplateRecord) -> TemplateSummary:
    """Show a template."""
    retired_at = None if record.retired_at is None else isoformat(record.retired_at)
    return TemplateSummary(record.name, record.published, record.draft, retired_at)


def version_view(record: VersionRecord) -> VersionView:
    """Show a version."""
    published_at = None if record.published_at is None else isoformat(record.published_at)
    return VersionView(record.number, isoformat(record.created_at), published_at)


def state_of(record: TemplateRecord, number: int) -> Literal["draft", "published", "superseded", "retired"]:
    """Tell what a version of a template is now."""
    if number == record.draft:
        return "draft"
    if record.retired_at is not None:
        return "retired"
    return "published" if number == record.published else "superseded"
