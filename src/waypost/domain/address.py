"""An address: where a message goes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from waypost.domain.audience import Audience
from waypost.domain.device import Device
from waypost.domain.ids import DeviceId, UserId, token_hash

FEED: Final = DeviceId("inapp:feed")
"""The name of a user's feed in receipts."""
UNROUTED: Final = DeviceId("")
"""What a receipt names in place of an address where a notification ended before one was found."""


class Feed(Struct, frozen=True):
    """The feed of one user in the app: every user has one."""

    user_id: UserId

    @property
    def token(self) -> str:
        """Its name, in place of a device's token."""
        return f"{FEED}\n{self.user_id}"

    @property
    def token_hash(self) -> bytes:
        """The hash of its name, as a device's token has one."""
        return token_hash(self.token)

    @property
    def label(self) -> str:
        """The name in place of a device in receipts."""
        return FEED


Address = Device | Audience | Feed
"""A user's device, everybody who listens at a provider, or a user's feed."""


def name_of(address: Address) -> DeviceId:
    """Return the name of *address* in receipts and answers: the device's id, or the label of any other address."""
    return address.device_id if isinstance(address, Device) else DeviceId(address.label)
