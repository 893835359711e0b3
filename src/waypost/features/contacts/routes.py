"""Routes of contacts: a user's telephone, mailbox and URL, each a device by another name, and the codes to them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import PathParameter, RawBody

from waypost.config.settings import ContactSettings
from waypost.domain.contact_code import is_code, read_link_token
from waypost.domain.dedup import shown
from waypost.domain.device import CONTACTS, Device, Platform, Registration, contact_id
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound, WaypostError
from waypost.domain.ids import AppId, UserId
from waypost.domain.limits import FixedWindow, Wait
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, isoformat
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.limits import RateLimited
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import PathApp, PathContact, PathIdentity, contact_in, user_in
from waypost.entrypoints.rest.registering import register
from waypost.entrypoints.rest.serving import vouch_for
from waypost.features.contacts.settings import secret_of, verifies
from waypost.features.contacts.verifying import FEATURE, contact_of, send_code
from waypost.features.contacts.views import (
    ContactList,
    ContactView,
    EnteredCode,
    RegisteredContact,
    SentCode,
    SubmittedContact,
)
from waypost.features.parts import Ground
from waypost.stores.sql.contact_proofs import Contact

_contact = msgspec.json.Decoder(SubmittedContact)
_entered = msgspec.json.Decoder(EnteredCode)
PathLink = Annotated[str, PathParameter(description="The signed token.")]


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
        codes=WRITE_CODES,
    ),
)
async def put_contact(request: Call, user_id: PathIdentity, kind: PathContact, body: RawBody) -> Response[bytes]:
    """Put the user's telephone number, mailbox or URL in place of the one before. Several users may have the same.

    It is sent to only where `channels` of a submission, or of the app, names its channel; and where the app has such
    contacts verified, only once its code was entered. A code is sent at once where the address is another than before.
    """
    said = decode(_contact, body)
    owner = user_in(request.user, user_id)
    named = request.user.app, owner, contact_id(Platform(contact_in(kind))), Platform(kind)
    before = await _found(request, owner, kind) if _is_verified(request, kind) else None
    try:
        stored = await register(api_of(request), Registration(*named, said.address, locale=said.locale))
    except InvalidRequest as invalid:
        raise InvalidRequest(tuple([_placed(fault) for fault in invalid.faults])) from None
    is_sent = False
    if _is_verified(request, kind) and (before is None or before.token != stored.device.token):
        await _ground(request).store.contact_proofs.forget(contact_of(stored.device))
        is_sent = await _send(request, stored.device)
    view = await _view(request, stored.device)
    fields = view.kind, view.address_hash, view.registered_at, view.last_seen_at, view.verified
    return answer(201 if stored.created else 200, RegisteredContact(*fields, stored.created, is_sent))


@get(
    "/v1/users/{user_id:str}/contacts",
    tags=["Devices"],
    summary="List a user's contacts",
    operation_id="listContacts",
    opt=speaks({200: ContactList}, DEVICES_OWN),
)
async def contacts(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """List the contacts that are registered; empty for an unknown user."""
    owned = await api_of(request).devices.of_user(request.user.app, user_in(request.user, user_id))
    found = sorted((each for each in owned if _is_contact(each)), key=lambda each: each.platform)
    return answer(200, ContactList(tuple([await _view(request, each) for each in found])))


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


@post(
    "/v1/users/{user_id:str}/contacts/{kind:str}/send-code",
    tags=["Devices"],
    summary="Send a code to a contact again",
    operation_id="sendContactCode",
    status_code=202,
    opt=speaks(
        {202: SentCode},
        DEVICES_OWN,
        codes=(ErrorCode.NOT_FOUND, ErrorCode.WRONG_STATE, ErrorCode.RATE_LIMITED, *WRITE_CODES),
    ),
)
async def send_code_again(request: Call, user_id: PathIdentity, kind: PathContact) -> Response[bytes]:
    """Send a new code to the contact; the one before does not hold any more."""
    device = await _to_verify(request, user_id, kind)
    if (await _view(request, device)).verified:
        raise WaypostError("the contact is verified", ErrorCode.WRONG_STATE)
    settings = _settings(request)
    if not await _send(request, device):
        now, window = api_of(request).clock.now(), FixedWindow(settings.codes_per_hour, HOUR_MS)
        raise RateLimited("codes to one address", window, Wait(0, HOUR_MS - now % HOUR_MS))
    return answer(202, SentCode(settings.code_s))


@post(
    "/v1/users/{user_id:str}/contacts/{kind:str}/verify",
    tags=["Devices"],
    summary="Verify a contact by its code",
    operation_id="verifyContact",
    status_code=200,
    opt=speaks(
        {200: ContactView},
        DEVICES_OWN,
        body=EnteredCode,
        example={"code": "123456"},
        codes=(ErrorCode.NOT_FOUND, ErrorCode.WRONG_CODE, *WRITE_CODES),
    ),
)
async def verify_contact(request: Call, user_id: PathIdentity, kind: PathContact, body: RawBody) -> Response[bytes]:
    """Enter the code that was sent to the contact as it is now; from then on it is sent to."""
    said = decode(_entered, body)
    device = await _to_verify(request, user_id, kind)
    if not (await _view(request, device)).verified and not await _is_proved(request, device, said.code):
        raise WaypostError("not the code, or it has ended or was tried too often", ErrorCode.WRONG_CODE)
    return answer(200, await _view(request, device))


@get(
    "/v/{app:str}/{link:str}",
    tags=["Devices"],
    summary="Show the page that verifies a contact",
    operation_id="getContactLink",
    opt=speaks({200: str}, None, codes=(ErrorCode.NOT_FOUND,)),
)
async def show_link(request: Call, app: PathApp, link: PathLink) -> Response[bytes]:
    """Show a page with a button that confirms. A GET changes nothing, since previews and scanners follow links."""
    await _linked(request, app, link)
    return _page(_ASKS)


@post(
    "/v/{app:str}/{link:str}",
    tags=["Devices"],
    summary="Verify a contact by its link",
    operation_id="postContactLink",
    status_code=200,
    opt=speaks({200: str}, None, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def confirm_link(request: Call, app: PathApp, link: PathLink) -> Response[bytes]:
    """Verify the contact that the link was sent to."""
    contact, nonce = await _linked(request, app, link)
    await _ground(request).store.contact_proofs.verify(contact, nonce, api_of(request).clock.now())
    return _page(_THANKS)


def _ground(request: Call) -> Ground:
    ground: Ground = ground_of(request, FEATURE)
    return ground


def _settings(request: Call) -> ContactSettings:
    return _ground(request).config.apps[request.user.app].contacts


def _is_verified(request: Call, kind: str) -> bool:
    """Tell whether the caller's app has contacts of this *kind* verified."""
    app = _ground(request).config.apps.get(request.user.app)
    return app is not None and kind in app.contacts.verify


async def _found(request: Call, owner: UserId, kind: str) -> Device | None:
    owned = await api_of(request).devices.of_user(request.user.app, owner)
    return next((each for each in owned if _is_contact(each) and each.platform == kind), None)


async def _to_verify(request: Call, user_id: str, kind: str) -> Device:
    """Find the user's contact that may be verified."""
    if not _is_verified(request, contact_in(kind)):
        raise NotFound("the app has no such contacts verified")
    device = await _found(request, user_in(request.user, user_id), kind)
    if device is None:
        raise NotFound("the user has no such contact")
    return device


async def _send(request: Call, device: Device) -> bool:
    intake = api_of(request).intake
    (new_id,) = intake.ids.next(1)
    is_sent = await send_code(_ground(request), device, new_id)
    intake.announce(Lane.CRITICAL)
    return is_sent


async def _is_proved(request: Call, device: Device, said: str) -> bool:
    """Spend a try; note the proof where *said* is the code."""
    ground, now = _ground(request), api_of(request).clock.now()
    pending = await ground.store.contact_proofs.spend_try(contact_of(device), now, _settings(request).tries)
    if pending is None or not is_code(secret_of(ground.settings), pending, said):
        return False
    return await ground.store.contact_proofs.verify(contact_of(device), pending.nonce, now)


async def _linked(request: Call, app: str, link: str) -> tuple[Contact, bytes]:
    """Find the contact that *link* was sent to; NotFound where it is none of ours, or has ended or was used."""
    ground = _ground(request)
    code = read_link_token(secret_of(ground.settings), AppId(app), link) if verifies(ground.config) else None
    if code is None:
        raise NotFound("no such link")
    vouch_for(request.scope)
    now = api_of(request).clock.now()
    contact = await ground.store.contact_proofs.linked(AppId(app), code.user_id, code.nonce, now)
    if contact is None:
        raise NotFound("the link has ended, or was used")
    return contact, code.nonce


def _is_contact(device: Device) -> bool:
    return device.platform in CONTACTS and device.device_id == contact_id(device.platform)


async def _view(request: Call, device: Device) -> ContactView:
    times = isoformat(device.registered_at), isoformat(device.last_seen_at)
    verified: bool | None = None
    if _is_verified(request, device.platform):
        proofs, now = _ground(request).store.contact_proofs, api_of(request).clock.now()
        known = (await proofs.of(device.app, [device.user_id], now)).get(device.user_id)
        verified = known is not None and device.token_hash in known.verified
    return ContactView(contact_in(device.platform), shown(device.token_hash), *times, verified)


def _placed(fault: Fault) -> Fault:
    return Fault({"token": "address", "platform": "kind"}.get(fault.path, fault.path), fault.why)


def _page(said: str) -> Response[bytes]:
    headers = {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"}
    return Response(_PAGE.format(said).encode(), status_code=200, headers=headers)


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>Confirm</title>
<style>body{{font:1rem/1.5 system-ui,sans-serif;display:grid;place-content:center;min-height:90vh;margin:1rem}}
button{{font:inherit;padding:.6rem 1.2rem}}</style>
{}</html>"""
_ASKS = '<form method="post"><p>Is this address yours?</p><button>Yes, it is</button></form>'
_THANKS = "<p>Thank you: this address is confirmed.</p>"

ROUTES = [put_contact, contacts, delete_contact, send_code_again, verify_contact, show_link, confirm_link]
