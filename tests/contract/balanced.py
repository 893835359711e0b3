"""The balance of a store under test: it adds up, whatever a test has done to it."""

from __future__ import annotations

from tests.contract.stores import StoreUnderTest


async def check_balance(store: StoreUnderTest) -> None:
    """Every line of every app and lane adds up, and a recount of all rows finds what was counted."""
    balances = (await store.balance.read()).balances
    off = {place: each.differences for place, each in balances.items() if each.differences}
    assert not off, f"the balance does not add up: {off}, of {balances}"
    assert await store.balance.audit() == []
