"""Accounts of people: found by name, logged in until they log out, are removed, or their time is over."""

from __future__ import annotations

import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.time import HOUR_MS, Instant, later
from waypost.stores.sql.accounts import Account, NewSession, SqlAccounts

pytestmark = pytest.mark.asyncio

NOW = Instant(1_800_000_000_000)
ANN = Account("ann", "operator", "$argon2id$hash", "SECRET", NOW)
BOB = Account("bob", "viewer", "$argon2id$other", None, NOW)
ONE, OTHER = b"1" * 32, b"2" * 32


@pytest.fixture
def accounts(ledger_store: SqlUnderTest) -> SqlAccounts:
    """The accounts of an empty store."""
    return ledger_store._opened.accounts


async def test_an_account_is_put_found_listed_and_removed_with_its_sessions(accounts: SqlAccounts) -> None:
    assert await accounts.find("ann") is None
    for each in (BOB, ANN):
        await accounts.put(each)
    assert await accounts.all(10) == [ANN, BOB] and await accounts.all(1) == [ANN]
    await accounts.begin(NewSession(ONE, "ann", NOW, later(NOW, HOUR_MS)))
    assert await accounts.logged_in(ONE, NOW) == ANN
    assert await accounts.remove("ann") and not await accounts.remove("ann")
    assert await accounts.logged_in(ONE, NOW) is None and await accounts.find("bob") == BOB


async def test_a_session_ends_by_its_time_by_itself_or_with_all_of_the_account(accounts: SqlAccounts) -> None:
    await accounts.put(ANN)
    for token in (ONE, OTHER):
        await accounts.begin(NewSession(token, "ann", NOW, later(NOW, HOUR_MS)))
    assert await accounts.logged_in(ONE, later(NOW, HOUR_MS - 1)) == ANN
    assert await accounts.logged_in(ONE, later(NOW, HOUR_MS)) is None
    await accounts.end(ONE)
    assert await accounts.logged_in(ONE, NOW) is None and await accounts.logged_in(OTHER, NOW) == ANN
    assert (await accounts.end_all("ann"), await accounts.end_all("ann")) == (1, 0)
    await accounts.begin(NewSession(ONE, "ann", NOW, later(NOW, HOUR_MS)))
    assert (await accounts.drop(NOW, 10), await accounts.drop(later(NOW, HOUR_MS), 10)) == (0, 1)


async def test_a_new_password_ends_sessions_and_a_code_holds_once(accounts: SqlAccounts) -> None:
    await accounts.put(ANN)
    assert await accounts.use_step("ann", 60)
    assert not await accounts.use_step("ann", 60) and not await accounts.use_step("ann", 59)
    assert await accounts.use_step("ann", 61) and not await accounts.use_step("nobody", 61)
    await accounts.begin(NewSession(ONE, "ann", NOW, later(NOW, HOUR_MS)))
    changed = Account("ann", "admin", "$argon2id$new", None, NOW)
    await accounts.put(changed)
    assert await accounts.find("ann") == changed and await accounts.logged_in(ONE, NOW) is None


async def test_whom_a_provider_vouches_for_has_the_role_that_it_said_last(accounts: SqlAccounts) -> None:
    name, ends_at = "oidc:ann@example.com", later(NOW, HOUR_MS)
    await accounts.enter("admin", NewSession(ONE, name, NOW, ends_at))
    assert await accounts.logged_in(ONE, NOW) == Account(name, "admin", "", None, NOW)
    await accounts.enter("viewer", NewSession(OTHER, name, later(NOW, 1), ends_at))
    for token in (ONE, OTHER):
        found = await accounts.logged_in(token, NOW)
        assert found is not None and found.role == "viewer"
    assert await accounts.end_all(name) == 2
