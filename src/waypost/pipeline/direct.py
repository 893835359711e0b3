"""Direct: the device that a submission names by its token, and the user that it belongs to.

A token that an active device has is that device's. Any other is kept before the notification is: as the one device of
a user of its own, until an app registers it for somebody. Where one does between the look-up and that, it is theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.device import Device, Platform, Registration, RegistrationCheck, registration_faults
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId
from waypost.domain.submission import Submission
from waypost.domain.submitted_device import SubmittedAddress, ownerless
from waypost.domain.time import Instant
from waypost.ports.devices import Devices, Named

AT_ONCE: Final = 50
"""The most tokens that are registered at once."""


class DirectDevices(Struct, frozen=True):
    """The devices that submissions name by their tokens (fulfils ports.devices.Direct)."""

    devices: Devices
    checks: Mapping[AppId, Mapping[Platform, RegistrationCheck]]
    """Of each app, what the channels of its platforms could never send to."""

    async def named(self, app: AppId, submissions: Sequence[Submission], now: Instant) -> list[Named]:
        """See Direct."""
        found: list[Named] = [
            None if each.device is None else self._described(app, each.device, now) for each in submissions
        ]
        asked = {each.token for each in found if isinstance(each, Registration)}
        if asked:
            tokens = list(asked)
            known = dict(zip(tokens, await self.devices.with_tokens(app, tokens), strict=True))
            found = [known[each.token] or each if isinstance(each, Registration) else each for each in found]
        return found

    async def keep(self, named: Sequence[Named], now: Instant) -> list[Named]:
        """See Direct."""
        new = list({each.token: each for each in named if isinstance(each, Registration)}.values())
        kept: dict[str, Device] = {}
        for n in range(0, len(new), AT_ONCE):
            devices = await asyncio.gather(*(self.devices.keep(each, now) for each in new[n : n + AT_ONCE]))
            kept |= {device.token: device for device in devices}
        return [kept[each.token] if isinstance(each, Registration) else each for each in named]

    def _described(self, app: AppId, said: SubmittedAddress, now: Instant) -> Registration | InvalidRequest:
        try:
            registration = ownerless(app, said, now)
        except InvalidRequest as invalid:
            return _placed(invalid.faults)
        faults = registration_faults(registration, self.checks.get(app, {}))
        return _placed(faults) if faults else registration


def _placed(faults: Sequence[Fault]) -> InvalidRequest:
    return InvalidRequest(tuple([Fault(f"device.{fault.path}", fault.why) for fault in faults]))
