"""Routes of contacts: a user's telephone, mailbox and URL, each a device by another name."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, delete, get, put
from litestar.params import RawBody
from msgspec import Meta, Struct

from waypost.domain.dedup import shown
from waypost.domain.device import CONTACTS, Device, Platform, Registration, contact_id
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound
from waypost.domain.submission import NO_CONTROLS
from waypost.domain.time import isoformat
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import ContactKind, PathContact, PathIdentity, contact_in, user_in
from waypost.entrypoints.rest.registering import register
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
    locale: Annotated[str, Meta(max_length=35, pattern=r"^[A-Za-z0-9_-]+(?!\n)$", examples=["de-CH"])] | None = None


class ContactView(Struct, frozen=True):
    """A contact as it is registered; the address itself is never shown."""

    kind: ContactKind
    address_hash: Hash
    registered_at: Timestamp
    last_seen_at: Timestamp


class RegisteredContact(ContactView, frozen=True):
    """A contact after it was put."""

    created: bool


class ContactList(Struct, frozen=True):
    """A user's contacts."""

    contacts: tuple[ContactView, ...]


_contact = msgspec.json.Decoder(SubmittedContact)


@put(
    "/v1/users/{user_id:str}/contacts/{kind:str}",
    tags=["Devices"],
    summary="Put a user's contact",
    operation_id="putContact",
    opt=speaks(
        {200: RegisteredContact, 201: RegisteredContact},
        DEVICES_OWN,
        body=SubmittedContact,
        example={"address": "ann@example.com"},
        meanings={200: "Replaced.", 201: "New."},
        codes=(ErrorCode.SHUTTING_DOWN,),
    ),
)
async def put_contact(request: Call, user_id: PathIdentity, kind: PathContact, body: RawBody) -> Response[bytes]:
    """Put the user's telephone number, mailbox or URL in place of the one before. Several users may have the same.

    It is sent to only where `channels` of a submission, or of the app, names its channel.
    """
    said = decode(_contact, body)
    owner = user_in(request.user, user_id)
    named = request.user.app, owner, contact_id(Platform(contact_in(kind))), Platform(kind)
    try:
        stored = await register(api_of(request), Registration(*named, said.address, locale=said.locale))
    except InvalidRequest as invalid:
        raise InvalidRequest(tuple([_placed(fault) for fault in invalid.faults])) from None
    view = _view(stored.device)
    fields = view.kind, view.address_hash, view.registered_at, view.last_seen_at
    return answer(201 if stored.created else 200, RegisteredContact(*fields, stored.created))


@get(
    "/v1/users/{user_id:str}/contacts",
    tags=["Devices"],
    summary="List a user's contacts",
    operation_id="listContacts",
    opt=speaks({200: ContactList}, DEVICES_OWN),
)
async def contacts(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """List the contacts that are sent to; empty for an unknown user."""
    owned = await api_of(request).devices.of_user(request.user.app, user_in(request.user, user_id))
    found = sorted((each for each in owned if _is_contact(each)), key=lambda each: each.platform)
    return answer(200, ContactList(tuple(map(_view, found))))


@delete(
    "/v1/users/{user_id:str}/contacts/{kind:str}",
    tags=["Devices"],
    summary="Remove a user's contact",
    operation_id="deleteContact",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND,)),
)
async def delete_contact(request: Call, user_id: PathIdentity, kind: PathContact) -> None:
    """Send nothing more to the contact until it is put again."""
    owner = user_in(request.user, user_id)
    if not await api_of(request).devices.deactivate(request.user.app, owner, contact_id(Platform(contact_in(kind)))):
        raise NotFound("the user has no such contact")


def _is_contact(device: Device) -> bool:
    return device.platform in CONTACTS and device.device_id == contact_id(device.platform)


def _view(device: Device) -> ContactView:
    times = isoformat(device.registered_at), isoformat(device.last_seen_at)
    return ContactView(contact_in(device.platform), shown(device.token_hash), *times)


def _placed(fault: Fault) -> Fault:
    return Fault({"token": "address", "platform": "kind"}.get(fault.path, fault.path), fault.why)


ROUTES = [put_contact, contacts, delete_contact]
