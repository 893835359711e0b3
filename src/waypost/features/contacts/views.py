"""The shapes of contacts in the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.domain.submission import NO_CONTROLS, Locale
from waypost.entrypoints.rest.parameters import ContactKind
from waypost.entrypoints.rest.views import Timestamp
from waypost.entrypoints.submitting import Hash


class SubmittedContact(Struct, frozen=True, forbid_unknown_fields=True):
    """An address of a person."""

    address: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            pattern=NO_CONTROLS,
            description="A telephone number with its country (`+49 170 1234567`), a mailbox, or an https URL.",
            examples=["ann@example.com"],
        ),
    ]
    locale: Locale | None = None


class ContactView(Struct, frozen=True):
    """A contact as it is registered; the address itself is never shown."""

    kind: ContactKind
    address_hash: Hash
    registered_at: Timestamp
    last_seen_at: Timestamp
    verified: Annotated[
        bool | None, Meta(description="Whether its code was entered; null where the app does not ask for that.")
    ]


class RegisteredContact(ContactView, frozen=True):
    """A contact after it was put."""

    created: bool
    code_sent: Annotated[bool, Meta(description="Whether a code is on its way to it.")]


class SentCode(Struct, frozen=True):
    """The answer that a code is on its way."""

    expires_in_s: Annotated[int, Meta(description="The seconds for which it holds; codes before it do not any more.")]


class EnteredCode(Struct, frozen=True, forbid_unknown_fields=True):
    """The code as its reader entered it."""

    code: Annotated[str, Meta(max_length=6, pattern=r"^[0-9]{6}(?!\n)$", examples=["123456"])]


class ContactList(Struct, frozen=True):
    """A user's contacts."""

    contacts: tuple[ContactView, ...]
