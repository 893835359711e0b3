"""The contract of Audit, on every engine."""

from __future__ import annotations

from typing import Final

import pytest

from tests.contract.bench import APP, OTHER_APP, Bench
from tests.contract.plans import misplanned
from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId
from waypost.domain.time import DAY_MS
from waypost.ports.audit import Act, AuditQuery, Ordered
from waypost.stores.sql.audit import OLD, PAGES

pytestmark = pytest.mark.asyncio


def order(bench: Bench, subject: str, act: Act = Act.KEY_MADE, by: str = "cli:ops", app: AppId = APP) -> Ordered:
    return Ordered(bench.now, app, by, "192.0.2.1", act, subject)


async def subjects(bench: Bench, **asked: object) -> list[str]:
    query = AuditQuery(APP, **asked)  # type: ignore[arg-type] # whatever a test asks for
    return [entry.ordered.subject for entry in await bench.store.audit.page(query)]


async def test_orders_are_listed_newest_first_by_app_act_and_who(bench: Bench) -> None:
    audit = bench.store.audit
    await audit.record([order(bench, "a"), order(bench, "b", Act.USER_ERASED, "shop")])
    await audit.record([order(bench, "c", by="shop"), order(bench, "foreign", app=OTHER_APP)])
    assert await subjects(bench) == ["c", "b", "a"]
    assert await subjects(bench, by="shop") == ["c", "b"]
    assert await subjects(bench, act=Act.USER_ERASED) == ["b"]
    assert await subjects(bench, act=Act.USER_ERASED, by="cli:ops") == []
    (newest,) = await audit.page(AuditQuery(APP, limit=1))
    assert newest.ordered == order(bench, "c", by="shop")
    assert await subjects(bench, before=newest.seq) == ["b", "a"]


async def test_what_is_old_goes_by_pages(bench: Bench) -> None:
    audit = bench.store.audit
    await audit.record([order(bench, "a"), order(bench, "b"), order(bench, "c")])
    bench.clock.advance(DAY_MS)
    await audit.record([order(bench, "d")])
    assert [await audit.drop_before(bench.now, 2) for _ in range(3)] == [2, 1, 0]
    assert await subjects(bench) == ["d"]


FILTERS: Final = (
    ({"act": Act.USER_ERASED}, ("app", "act")),
    ({"by": "nobody"}, ("app", "ordered_by")),
    ({"act": Act.KEY_MADE, "by": "cli:ops"}, ("app", "act", "ordered_by")),
    ({"act": Act.KEY_REVOKED, "by": "shop"}, ("app", "act", "ordered_by")),
)
"""Filters of which no entry has all, though thousands have some, and the key that each goes down."""


async def test_who_finds_nothing_on_record_looks_at_no_entry(ledger_store: SqlUnderTest) -> None:
    """Nor does who looks for what is old, where nothing is."""
    (worker,) = await ledger_store.open_workers(1)
    bench, store = Bench(ledger_store, worker), ledger_store._opened
    said = ((Act.KEY_MADE, "shop"), (Act.KEY_REVOKED, "cli:ops"))
    await store.audit.record([order(bench, f"{n}", *said[n % 2]) for n in range(3_000)])
    for asked, keys in FILTERS:
        bound = (APP, 1 << 62, *asked.values(), 50)
        assert await misplanned(store.database, PAGES["act" in asked, "by" in asked], bound, keys=keys) == [], asked
    assert await misplanned(store.database, OLD, (0, 50), keys=()) == []
