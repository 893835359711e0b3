"""Whose addresses are proved: a code for one address is worth nothing for another, and is tried and sent so often."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.contact_code import PendingCode
from waypost.domain.device import EMAIL, PHONE
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, Instant, later
from waypost.stores.sql.contact_proofs import Asked, Contact, ContactFacts, SqlContactProofs

pytestmark = pytest.mark.asyncio

DEMO, ANN = AppId("demo"), UserId("ann")
NOW = Instant(1_800_000_000_000 - 1_800_000_000_000 % HOUR_MS)
SOON = later(NOW, 10 * MINUTE_MS)
MAILBOX = Contact(DEMO, ANN, EMAIL, b"m" * 16)
OTHER = Contact(DEMO, ANN, EMAIL, b"o" * 16)
NUMBER = Contact(DEMO, ANN, PHONE, b"n" * 16)
FIRST = Asked(MAILBOX, b"1" * 16, NOW, SOON, b"c" * 16, 3)


def another(**fields: Any) -> Asked:
    """A wish for a code that differs in *fields*."""
    return msgspec.structs.replace(FIRST, **fields)


async def known(proofs: SqlContactProofs, now: Instant = NOW) -> ContactFacts:
    """What is known of ann's contacts."""
    return (await proofs.of(DEMO, [ANN, UserId("bob")], now)).get(ANN, ContactFacts())


@pytest.fixture
def proofs(ledger_store: SqlUnderTest) -> SqlContactProofs:
    """The proofs of an empty store."""
    return ledger_store._opened.contact_proofs


async def test_a_code_proves_its_address_once(proofs: SqlContactProofs) -> None:
    assert await proofs.ask(FIRST)
    assert await known(proofs) == ContactFacts(frozenset(), (PendingCode(MAILBOX.address, FIRST.nonce, SOON),))
    assert await proofs.spend_try(MAILBOX, NOW, 5) == PendingCode(MAILBOX.address, FIRST.nonce, SOON)
    assert await proofs.verify(MAILBOX, FIRST.nonce, NOW)
    assert await known(proofs) == ContactFacts(frozenset({MAILBOX.address}), ())
    assert not await proofs.verify(MAILBOX, FIRST.nonce, NOW)


async def test_a_code_of_another_address_is_none(proofs: SqlContactProofs) -> None:
    await proofs.ask(FIRST)
    assert await proofs.spend_try(OTHER, NOW, 5) is None
    assert await proofs.spend_try(NUMBER, NOW, 5) is None
    await proofs.ask(another(contact=OTHER, nonce=b"2" * 16))
    assert await proofs.spend_try(MAILBOX, NOW, 5) is None, "the newer one is in its place"
    assert not await proofs.verify(MAILBOX, FIRST.nonce, NOW)


async def test_who_proves_another_address_has_not_proved_the_one_before_any_more(proofs: SqlContactProofs) -> None:
    await proofs.ask(FIRST)
    await proofs.verify(MAILBOX, FIRST.nonce, NOW)
    await proofs.ask(another(contact=OTHER, nonce=b"2" * 16))
    await proofs.verify(OTHER, b"2" * 16, NOW)
    assert (await known(proofs)).verified == {OTHER.address}
    await proofs.forget(OTHER)
    assert await known(proofs) == ContactFacts()


async def test_tries_at_the_same_time_are_so_many_and_a_new_code_begins_anew(proofs: SqlContactProofs) -> None:
    await proofs.ask(FIRST)
    tried = await asyncio.gather(*(proofs.spend_try(MAILBOX, NOW, 5) for _ in range(20)))
    assert len([each for each in tried if each is not None]) == 5
    await proofs.ask(another(nonce=b"2" * 16))
    assert await proofs.spend_try(MAILBOX, NOW, 5) is not None


async def test_a_code_that_has_ended_is_none(proofs: SqlContactProofs) -> None:
    await proofs.ask(FIRST)
    assert await proofs.linked(DEMO, ANN, FIRST.nonce, NOW) == MAILBOX
    assert await proofs.linked(DEMO, ANN, b"2" * 16, NOW) is None
    assert await proofs.linked(DEMO, ANN, FIRST.nonce, SOON) is None
    assert await proofs.spend_try(MAILBOX, SOON, 5) is None
    assert (await known(proofs, SOON)).pending == ()


async def test_codes_to_one_address_are_counted_whoever_asks(proofs: SqlContactProofs) -> None:
    of_bob = another(contact=Contact(DEMO, UserId("bob"), EMAIL, b"b" * 16))
    asked = await asyncio.gather(*(proofs.ask(each) for each in [FIRST, of_bob] * 5))
    assert sum(asked) == 3
    assert await proofs.ask(another(counted_as=b"d" * 16)), "another address"
    assert await proofs.ask(another(now=later(NOW, HOUR_MS))), "another hour"


async def test_what_is_old_goes_and_a_user_is_erased(proofs: SqlContactProofs) -> None:
    await proofs.ask(FIRST)
    await proofs.ask(another(contact=NUMBER, nonce=b"2" * 16))
    await proofs.verify(NUMBER, b"2" * 16, NOW)
    assert await proofs.drop(NOW, 100) == 0
    assert await proofs.drop(later(SOON, 1), 100) == 1, "the code of the mailbox; what is proved stays"
    assert await proofs.drop(later(NOW, DAY_MS + HOUR_MS), 100) == 1, "the count"
    assert (await known(proofs)).verified == {NUMBER.address}
    await proofs.ask(FIRST)
    await proofs.erase(DEMO, ANN, Instant(NOW - 1))
    assert (await known(proofs)).verified == {NUMBER.address}, "what came after the order stays"
    await proofs.erase(DEMO, ANN, NOW)
    assert await known(proofs) == ContactFacts()
