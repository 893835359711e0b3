"""Keys: the store of API keys."""

from __future__ import annotations

import msgspec
import pytest

from tests.contract.stores import StoreUnderTest
from waypost.domain.ids import AppId, CallerId
from waypost.domain.scope import Scope
from waypost.domain.time import Instant
from waypost.ports.keys import ApiKey, made_for_ms

pytestmark = pytest.mark.asyncio


def key(prefix: str, app: str = "demo", at: int = 1) -> ApiKey:
    """A key made at *at*."""
    return ApiKey(prefix, b"h" * 32, AppId(app), CallerId("orders"), Instant(at))


async def test_a_key_is_found_by_its_prefix(store: StoreUnderTest) -> None:
    await store.keys.add(key("wp_1"))
    assert await store.keys.find("wp_1") == key("wp_1")
    assert await store.keys.find("wp_2") is None


async def test_a_prefix_in_use_is_refused(store: StoreUnderTest) -> None:
    await store.keys.add(key("wp_1"))
    with pytest.raises(ValueError, match="in use"):
        await store.keys.add(key("wp_1", app="other"))
    assert await store.keys.find("wp_1") == key("wp_1")


async def test_all_keys_oldest_first(store: StoreUnderTest) -> None:
    kept = [key("wp_b", at=3), key("wp_a", "other", at=2), key("wp_c", at=1)]
    for one in kept:
        await store.keys.add(one)
    assert await store.keys.all() == [kept[2], kept[1], kept[0]]
    assert await store.keys.all(AppId("demo")) == [kept[2], kept[0]]
    assert await store.keys.all(AppId("nobody")) == []


async def test_a_revoked_key_is_still_found_as_such(store: StoreUnderTest) -> None:
    await store.keys.add(key("wp_1"))
    assert await store.keys.revoke("wp_1", Instant(5))
    assert await store.keys.find("wp_1") == msgspec.structs.replace(key("wp_1"), revoked_at=Instant(5))


async def test_only_a_live_key_can_be_revoked(store: StoreUnderTest) -> None:
    await store.keys.add(key("wp_1"))
    await store.keys.revoke("wp_1", Instant(5))
    assert not await store.keys.revoke("wp_1", Instant(6))
    assert not await store.keys.revoke("wp_2", Instant(6))
    found = await store.keys.find("wp_1")
    assert found is not None
    assert found.revoked_at == 5


async def test_a_key_keeps_its_scopes_and_its_end(store: StoreUnderTest) -> None:
    narrow = msgspec.structs.replace(
        key("wp_1"), scopes=frozenset({Scope.SEND_ANY_USER, Scope.READ}), expires_at=Instant(9)
    )
    await store.keys.add(narrow)
    assert await store.keys.find("wp_1") == narrow
    assert await store.keys.all() == [narrow]


@pytest.mark.parametrize(("had", "has"), [(None, 7), (5, 5), (9, 7)])
async def test_a_replaced_key_expires_no_later_than_it_would_have(
    store: StoreUnderTest, had: int | None, has: int
) -> None:
    old = msgspec.structs.replace(key("wp_1"), expires_at=None if had is None else Instant(had))
    await store.keys.add(old)
    assert await store.keys.replace("wp_1", key("wp_2"), Instant(7))
    assert await store.keys.find("wp_1") == msgspec.structs.replace(old, expires_at=Instant(has), made_for_ms=0)
    assert await store.keys.find("wp_2") == key("wp_2")


async def test_a_replaced_key_is_known_by_the_life_it_was_given(store: StoreUnderTest) -> None:
    """However often it is replaced: the first answer may have been lost."""
    await store.keys.add(msgspec.structs.replace(key("wp_1"), expires_at=Instant(9)))
    for n, until in ((2, 7), (3, 5)):
        old = await store.keys.find("wp_1")
        assert old is not None and made_for_ms(old) == 8
        new = msgspec.structs.replace(key(f"wp_{n}", at=n), expires_at=Instant(n + 8))
        assert await store.keys.replace("wp_1", new, Instant(until))


async def test_nothing_is_added_where_there_is_nothing_to_replace(store: StoreUnderTest) -> None:
    await store.keys.add(key("wp_1"))
    await store.keys.revoke("wp_1", Instant(5))
    assert not await store.keys.replace("wp_1", key("wp_2"), Instant(7))
    assert not await store.keys.replace("wp_3", key("wp_4"), Instant(7))
    assert [each.prefix for each in await store.keys.all()] == ["wp_1"]


async def test_the_last_use_only_grows(store: StoreUnderTest) -> None:
    for prefix in ("wp_1", "wp_2"):
        await store.keys.add(key(prefix))
    await store.keys.touch({"wp_1": Instant(7), "wp_gone": Instant(7)})
    await store.keys.touch({"wp_1": Instant(6), "wp_2": Instant(4)})
    assert [each.last_used_at for each in await store.keys.all()] == [7, 4]
