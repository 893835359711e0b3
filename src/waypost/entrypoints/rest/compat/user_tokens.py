"""``/api/tokens``: the user API's devices, each known by its token."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, delete, post
from litestar.params import PathParameter, RawBody
from msgspec import Meta, Struct

from waypost.domain.device import Device, Platform, Registration
from waypost.domain.errors import ErrorCode, NotFound
from waypost.domain.ids import DeviceId, UserId, token_hash
from waypost.domain.submitted_device import PlatformName, SubmittedKeys, TokenText, subscription_keys
from waypost.domain.text import NO_NUL
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Api, Call, api_of
from waypost.entrypoints.rest.compat.reader import ActingFor, reader
from waypost.entrypoints.rest.parameters import text_in
from waypost.entrypoints.rest.registering import register

Said = Annotated[str, Meta(max_length=128, pattern=NO_NUL)]


class DeviceInfo(Struct, frozen=True):
    """A client's description of its device; the model is not stored."""

    model: Said | None = None
    os_version: Said | None = None
    app_version: Said | None = None


class SubmittedToken(Struct, frozen=True):
    """A token; other fields of the body, including a user, are ignored."""

    token: TokenText
    platform: PlatformName
    device_info: DeviceInfo = DeviceInfo()
    keys: Annotated[SubmittedKeys | None, Meta(description="The keys of a browser's push subscription.")] = None


class TokenRow(Struct, frozen=True):
    """A registered token."""

    id: Annotated[str, Meta(description="The `device_id` under `/v1`.")]
    token: str
    platform: Platform


class TokenAnswer(Struct, frozen=True):
    """A successful answer."""

    data: TokenRow
    success: bool = True


_token = msgspec.json.Decoder(SubmittedToken)


@post(
    "/api/tokens",
    tags=["Other APIs"],
    summary="Register a token (user API)",
    operation_id="postToken",
    status_code=201,
    opt=speaks(
        {201: TokenAnswer},
        DEVICES_OWN,
        body=SubmittedToken,
        example={"token": "registration-token", "platform": "android", "device_info": {"app_version": "1.4.2"}},
        meanings={201: "Registered or refreshed."},
        codes=(ErrorCode.SHUTTING_DOWN,),
        enveloped=True,
    ),
)
async def register_token(request: Call, body: RawBody, acting_for: ActingFor = None) -> Response[bytes]:
    """Refresh a token that the user has already; any other becomes a new device, whose id is derived from the
    token."""
    api, app, user = api_of(request), request.user.app, reader(request.user, acting_for)
    said = decode(_token, body)
    known = await _with_token(api, request, user, said.token)
    registration = Registration(
        app=app,
        user_id=user,
        device_id=known[0].device_id if known else DeviceId(token_hash(said.token).hex()),
        platform=said.platform,
        token=said.token,
        keys=None if said.keys is None else subscription_keys(said.keys),
        app_version=said.device_info.app_version or None,
        os_version=said.device_info.os_version or None,
    )
    stored = await register(api, registration)
    return answer(201, TokenAnswer(_row(stored.device)))


@delete(
    "/api/tokens/{token:str}",
    tags=["Other APIs"],
    summary="Deactivate a token (user API)",
    operation_id="deleteToken",
    status_code=200,
    opt=speaks({200: TokenAnswer}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND, ErrorCode.SHUTTING_DOWN), enveloped=True),
)
async def deactivate_token(
    request: Call,
    token: Annotated[str, PathParameter(description="The token or its `id`; percent-encode what a path cannot hold.")],
    acting_for: ActingFor = None,
) -> Response[bytes]:
    """Stop sending to it until it is registered again; its row stays. Repeating the call is harmless."""
    api, user = api_of(request), reader(request.user, acting_for)
    known = await _with_token(api, request, user, text_in(token, "token", TokenText))
    if not known:
        raise NotFound("no such token")
    for device in known:
        await api.devices.deactivate(request.user.app, user, device.device_id)
    return answer(200, TokenAnswer(_row(known[0])))


async def _with_token(api: Api, request: Call, user: UserId, token_or_id: str) -> list[Device]:
    """Find the user's devices with this token or id, the active one first."""
    devices = await api.devices.of_user(request.user.app, user, inactive=True)
    found = [device for device in devices if token_or_id in (device.token, device.device_id)]
    return sorted(found, key=lambda device: not device.active)


def _row(device: Device) -> TokenRow:
    return TokenRow(device.device_id, device.token, device.platform)


ROUTES = [register_token, deactivate_token]
