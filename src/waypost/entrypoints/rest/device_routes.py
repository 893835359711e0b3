"""Routes of devices: register, list, deactivate."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, delete, get, put
from litestar.params import QueryParameter, RawBody

from waypost.domain.errors import ErrorCode, Fault, NotFound
from waypost.domain.ids import DeviceId
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.bodies import SubmittedDevice
from waypost.entrypoints.rest.parameters import PathIdentity, identity_in, user_in
from waypost.entrypoints.rest.registering import register as register_device
from waypost.entrypoints.rest.views import DeviceList, RegisteredDevice, device_view

_device = msgspec.json.Decoder(SubmittedDevice)


@put(
    "/v1/devices/{user_id:str}/{device_id:str}",
    tags=["Devices"],
    summary="Register or refresh a device",
    operation_id="putDevice",
    opt=speaks(
        {200: RegisteredDevice, 201: RegisteredDevice},
        DEVICES_OWN,
        body=SubmittedDevice,
        example={"platform": "android", "token": "registration-token", "app_version": "1.4.2", "locale": "de-CH"},
        meanings={200: "Refreshed.", 201: "New."},
        codes=(ErrorCode.SHUTTING_DOWN,),
    ),
)
async def register(request: Call, user_id: PathIdentity, device_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Call this at every launch of the app and whenever a browser's subscription changes: an existing device is
    replaced. If another device or user has the token, it is taken from them.

    201 if the device is new. Above the cap per user, the devices seen longest ago are deactivated.
    """
    api = api_of(request)
    said = decode(_device, body)
    now, owner = api.clock.now(), user_in(request.user, user_id)
    registration = said.registration(request.user.app, owner, DeviceId(identity_in(device_id, "device_id")), now)
    has_ended = said.expiration_time is not None and said.expiration_time <= now
    faults = [Fault("expiration_time", "the subscription has ended already")] if has_ended else []
    stored = await register_device(api, registration, faults)
    body_view = RegisteredDevice(device_view(stored.device), stored.created, stored.pushed_out)
    return answer(201 if stored.created else 200, body_view)


@get(
    "/v1/devices/{user_id:str}",
    tags=["Devices"],
    summary="List a user's devices",
    operation_id="listDevices",
    opt=speaks({200: DeviceList}, DEVICES_OWN),
)
async def of_user(
    request: Call,
    user_id: PathIdentity,
    inactive: Annotated[bool, QueryParameter(description="Include deactivated devices.")] = False,
) -> Response[bytes]:
    """List the devices, newest registration first; empty for an unknown user."""
    owner = user_in(request.user, user_id)
    devices = await api_of(request).devices.of_user(request.user.app, owner, inactive=inactive)
    return answer(200, DeviceList(tuple(device_view(device) for device in devices)))


@delete(
    "/v1/devices/{user_id:str}/{device_id:str}",
    tags=["Devices"],
    summary="Deactivate a device",
    operation_id="deleteDevice",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND,)),
)
async def deactivate(request: Call, user_id: PathIdentity, device_id: PathIdentity) -> None:
    """Deactivate the device: nothing more is sent to it until it registers again."""
    owner = user_in(request.user, user_id)
    device = DeviceId(identity_in(device_id, "device_id"))
    if not await api_of(request).devices.deactivate(request.user.app, owner, device):
        raise NotFound("no such active device")


ROUTES = [register, of_user, deactivate]
