"""An address: where a message goes."""

from __future__ import annotations

from typing import Final

from waypost.domain.audience import Audience
from waypost.domain.device import Device
from waypost.domain.ids import DeviceId

Address = Device | Audience
"""A user's device, or everybody who listens at a provider."""

UNROUTED: Final = DeviceId("")
"""What a receipt names in place of an address where a notification ended before one was found."""


def name_of(address: Address) -> DeviceId:
    """Return the name of *address* in receipts and answers: the device's id, or the label of any other address."""
    return address.device_id if isinstance(address, Device) else DeviceId(address.label)
