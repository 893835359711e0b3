"""The registration of a device, whatever the form it was described in."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.device import Registration, registration_faults
from waypost.domain.errors import Fault, InvalidRequest
from waypost.entrypoints.rest.api import Api
from waypost.ports.devices import Registered


async def register(api: Api, registration: Registration, faults: Sequence[Fault] = ()) -> Registered:
    """Store a registration that its channel accepts; InvalidRequest carries every fault, *faults* among them."""
    found = [*registration_faults(registration, api.device_checks.get(registration.app, {})), *faults]
    if found:
        raise InvalidRequest(tuple(found))
    return await api.devices.upsert(registration, api.clock.now(), api.device_caps[registration.app])
