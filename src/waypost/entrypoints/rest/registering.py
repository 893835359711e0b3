"""The registration of a device, whatever the form it was described in."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from waypost.domain.device import Registration, registration_faults
from waypost.domain.errors import Fault, InvalidRequest
from waypost.entrypoints.rest.api import Api
from waypost.ports.devices import Registered


async def register(api: Api, registration: Registration, faults: Sequence[Fault] = ()) -> Registered:
    """Store a registration that its channel accepts; InvalidRequest carries every fault, *faults* among them.

    An address is stored in its channel's own form.
    """
    canonical = api.canonical.get(registration.platform, str)
    registration = replace(registration, token=canonical(registration.token))
    found = [*registration_faults(registration, api.device_checks.get(registration.app, {})), *faults]
    if found:
        raise InvalidRequest(tuple(found))
    return await api.devices.upsert(registration, api.clock.now(), api.device_caps[registration.app])
