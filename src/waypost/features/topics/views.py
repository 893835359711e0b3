"""The shapes of topics in the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.domain.segment import TopicName
from waypost.domain.submission import Identity
from waypost.domain.text import NO_NUL
from waypost.domain.time import isoformat
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.ports.topics import Topic

AT_ONCE = 10_000
"""The most users of one change."""
Users = Annotated[tuple[Identity, ...], Meta(max_length=AT_ONCE)]


class SubmittedTopic(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic as the app wants it."""

    description: Annotated[str, Meta(max_length=512, pattern=NO_NUL, description="What it is about.")] = ""
    open: Annotated[bool, Meta(description="Whether users may subscribe with tokens of their own.")] = False


class TopicView(Struct, frozen=True):
    """A topic."""

    name: TopicName
    description: Annotated[str, Meta(description="What it is about.")]
    open: Annotated[bool, Meta(description="Whether users may subscribe by themselves.")]
    created_at: Timestamp


class CountedTopic(Struct, frozen=True):
    """A topic, and how many users hear it."""

    name: TopicName
    description: Annotated[str, Meta(description="What it is about.")]
    open: Annotated[bool, Meta(description="Whether users may subscribe by themselves.")]
    created_at: Timestamp
    members: Annotated[int, Meta(description="How many users hear it.")]


class TopicPage(Struct, frozen=True):
    """Topics by name."""

    items: tuple[TopicView, ...]
    next: Cursor


class TopicMemberPage(Struct, frozen=True):
    """The ids of users who hear a topic."""

    items: tuple[str, ...]
    next: Cursor


class SubmittedMembers(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of who hears a topic."""

    add: Annotated[Users, Meta(description="Users who hear it from now on.")] = ()
    remove: Annotated[Users, Meta(description="Users who do not any more.")] = ()


class HeardTopics(Struct, frozen=True):
    """The topics that a user hears."""

    topics: Annotated[tuple[TopicName, ...], Meta(description="Their names.")]


def topic_view(topic: Topic) -> TopicView:
    """Describe a topic."""
    return TopicView(topic.name, topic.description, topic.is_open, isoformat(topic.created_at))
