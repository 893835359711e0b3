"""Accounts of the dashboard, as the command line makes and ends them."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from msgspec import Struct

from waypost.bootstrap.admin import migrate_store, open_admin_store
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.features.dashboard.credentials import hash_of, new_password, new_secret, uri_of
from waypost.features.dashboard.operators import NAMES_TAKEN
from waypost.ports.audit import Act, Ordered
from waypost.runtime.clock import SystemClock
from waypost.stores.sql.accounts import Account
from waypost.stores.sql.store import Store

MOST = 1_000
"""The most accounts that are listed."""


class MadeAccount(Struct, frozen=True):
    """An account with what is shown of it once."""

    name: str
    role: str
    password: str
    second_factor: str | None
    """What an authenticator takes; None where there is no second factor."""


def is_taken(name: str) -> bool:
    """Tell whether the record of orders calls somebody so who has no account."""
    return name in NAMES_TAKEN


async def put_account(
    config: Config, name: str, role: str | None, *, second_factor: bool, is_new: bool
) -> MadeAccount | None:
    """Make an account, or give one that is there a new password, and a new *role* if one is given.

    None where a new one is there already, or another is not.
    """
    if find_spec("argon2") is None:
        raise ConfigurationError("dashboard.accounts", f"needs: {how_to_install('dashboard')}")
    async with _opened(config) as store:
        before = await store.accounts.find(name)
        chosen = role or (None if before is None else before.role)
        if chosen is None or is_new != (before is None):
            return None
        password, secret = new_password(), new_secret() if second_factor else None
        await _record(config, store, Act.ACCOUNT_PUT, name)
        now = SystemClock().now()
        await store.accounts.put(Account(name, chosen, hash_of(password), secret, now))
        return MadeAccount(name, chosen, password, None if secret is None else uri_of(name, secret))


async def list_accounts(config: Config) -> list[Account]:
    """List the accounts by name."""
    async with _opened(config) as store:
        return await store.accounts.all(MOST)


async def remove_account(config: Config, name: str) -> bool:
    """Delete an account and end its sessions; False if there is none."""
    async with _opened(config) as store:
        await _record(config, store, Act.ACCOUNT_REMOVED, name)
        return await store.accounts.remove(name)


async def end_sessions(config: Config, name: str) -> int:
    """End the sessions of an account; return how many it was."""
    async with _opened(config) as store:
        return await store.accounts.end_all(name)


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[Store]:
    """Open the store, with its tables, which a process that never ran has not made yet."""
    migrate_store(config)
    async with open_admin_store(config) as store:
        yield store


async def _record(config: Config, store: Store, act: Act, name: str) -> None:
    """Put on record what is about no app, for each of them."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have them
        who = str(os.getuid())
    now, origin = SystemClock().now(), socket.gethostname()
    await store.audit.record([Ordered(now, app, f"cli:{who}", origin, act, name) for app in config.apps])
