"""The registry of devices and their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.device import Device, Registration
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.submission import Submission
from waypost.domain.time import Instant


class Registered(Struct, frozen=True):
    """The stored device after an upsert."""

    device: Device
    created: bool
    pushed_out: tuple[DeviceId, ...] = ()
    """Devices of the same user that the cap deactivated: those seen longest ago."""
    taken_from: tuple[UserId, ...] = ()
    """Other users who had this token until now: an active device of theirs is not any more."""


class Eviction(Struct, frozen=True):
    """A dead token: its device is deactivated if its last registration call is before *seen_before*."""

    app: AppId
    token_hash: bytes
    seen_before: Instant
    deletes: bool = False
    """Whether the device is deleted instead."""


class Use(Struct, frozen=True):
    """A successful send to a device."""

    app: AppId
    user_id: UserId
    device_id: DeviceId
    at: Instant


class Lookup(Protocol):
    """A reader of the registry for deliveries: the devices of users."""

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """Return the active devices of each user, in the order asked, each list by platform then device id."""
        ...


class Devices(Lookup, Protocol):
    """The device registry: a token has one owner at a time. Deactivation keeps the row."""

    async def upsert(self, registration: Registration, now: Instant, cap: int) -> Registered:
        """Register or refresh one device; safe against concurrent calls for the same device or token.

        ``last_seen_at`` moves always, ``token_updated_at`` only when the token changed. The token is taken from any
        other device or user that has it. Above *cap* active devices (0 = no cap) those seen longest ago are
        deactivated.
        """
        ...

    async def keep(self, registration: Registration, now: Instant) -> Device:
        """Register a token that no active device has, and return the device; else return the one that has it, as it is.

        It is one step: whoever registers the token before, after or meanwhile has it in the end.
        """
        ...

    async def of_user(self, app: AppId, user_id: UserId, *, inactive: bool = False) -> list[Device]:
        """Return a user's devices, newest registration first; with *inactive*, the deactivated ones too."""
        ...

    async def with_tokens(self, app: AppId, tokens: Sequence[str]) -> list[Device | None]:
        """Return the active device that has each token, in the order asked; None where none has."""
        ...

    async def with_contact(self, app: AppId, address: str, n: int) -> list[Device] | None:
        """Return at most *n* active mailboxes and telephones that are *address*, in its stored form, by user.

        Several users may have the same. None where a registry cannot look for them.
        """
        ...

    async def deactivate(self, app: AppId, user_id: UserId, device_id: DeviceId) -> bool:
        """Stop sending to a device; False if there is no such active device."""
        ...

    async def evict(self, evictions: Sequence[Eviction]) -> list[tuple[AppId, UserId]]:
        """Deactivate or delete dead tokens, exactly those named, if not registered again since; say whose they were.

        One answer for each device that is gone.
        """
        ...

    async def purge(self, app: AppId, inactive_since: Instant) -> int:
        """Delete the devices that were deactivated before *inactive_since* and are so still; say how many, in pages."""
        ...

    async def touch(self, uses: Sequence[Use]) -> None:
        """Move ``last_used_at`` forward, never back."""
        ...

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Delete a user's devices that were registered until *until*, deactivated ones too: no row stays."""
        ...

    async def scan(self, app: AppId, after: tuple[UserId, DeviceId] | None, n: int) -> list[Device]:
        """Return at most *n* active devices of an app after the key given: one page of a walk; an empty one ends it.

        The users come in an order of the store's own, each with all devices by id.
        """
        ...


Named = Device | Registration | InvalidRequest | None
"""The device that has a token, how it is to be registered, or what is wrong with it; None where none is named."""


class Direct(Protocol):
    """The devices that submissions name by their tokens."""

    async def named(self, app: AppId, submissions: Sequence[Submission], now: Instant) -> list[Named]:
        """Find the device that each submission names; nothing is kept yet."""
        ...

    async def keep(self, named: Sequence[Named], now: Instant) -> list[Named]:
        """Register what still nobody has; what has each token then, in the order given.

        Unavailable where that cannot be.
        """
        ...
