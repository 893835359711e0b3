"""The routes of alerts: pages, and what cannot be retried or resolved; journeys show what can."""

from __future__ import annotations

import pytest

from tests.adapters.rest.service import DEMO, Service, shown
from waypost.domain.ids import AppId, format_id, parse_id
from waypost.domain.notification import Lane
from waypost.domain.recovery import AlertType
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.recovery import Alert

pytestmark = pytest.mark.asyncio


async def test_alerts_are_listed_by_page_and_an_order_is_refused_where_it_makes_no_sense() -> None:
    service = Service()
    await service.add_keys()
    kept = service.stores.recovery.kept
    async with service.client() as client:
        made = [(await client.post("/v1/notifications", json=shown(data={"n": n}))).json()["id"] for n in range(3)]
        for each in made:
            one, now = parse_id(each), service.clock.now()
            kept[one] = Alert(AppId(DEMO), one, AlertType.ORPHANED_PENDING, "nobody took it", None, "pending", 0, now)
        first = (await client.get("/v1/alerts?limit=2")).json()
        rest = (await client.get(f"/v1/alerts?limit=2&cursor={first['next']}")).json()
        assert [each["notification_id"] for each in first["items"] + rest["items"]] == made[::-1]
        assert rest["next"] is None
        unknown = "019c1234-5678-7abc-8def-0123456789ab"
        for order in ("retry", "resolve"):
            assert (await client.post(f"/v1/alerts/{unknown}/{order}")).json()["code"] == "not_found"
            assert (await client.post(f"/v1/alerts/x/{order}")).status_code == 404
        held = await service.work.lease(Lane.NORMAL, 1, later(service.clock.now(), MINUTE_MS))
        assert format_id(held.items[0].notification.id) == made[0]
        for order in ("retry", "resolve"):
            answer = await client.post(f"/v1/alerts/{made[0]}/{order}")
            assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
        assert (await client.post(f"/v1/alerts/{made[1]}/resolve")).json()["how"] == "resolved"
        again = await client.post(f"/v1/alerts/{made[1]}/resolve")
        assert (again.status_code, again.json()["code"]) == (409, "wrong_state")
        assert (await client.post(f"/v1/alerts/{made[2]}/retry")).json()["how"] == "retried"
        (open_one,) = (await client.get("/v1/alerts?resolved=false")).json()["items"]
        assert open_one["notification_id"] == made[0]
