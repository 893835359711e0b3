"""Alerts: notifications that nobody moves; somebody retries or resolves them."""

from __future__ import annotations

from litestar import Response

from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.looking import SHOWN
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page


@shows("/alerts", every_s=5)
async def alerts(desk: Desk) -> Response[bytes]:
    """List the alerts that are open, or with ``all`` those too that are resolved."""
    is_all = desk.given("all") is not None
    query = {"resolved": None if is_all else "false", "cursor": desk.given("cursor"), "limit": SHOWN}
    page = await desk.ask("GET", "/v1/alerts", query=query)
    return desk.show("alerts.html", alerts=page["items"], onward=page["next"], is_all=is_all)


@acts("/alerts/{id:str}/retry", Right.OPERATE)
async def retry(desk: Desk) -> Response[bytes]:
    """Offer its notification to workers again."""
    await desk.ask("POST", "/v1/alerts/{}/retry", desk.part("id"))
    return desk.done("It is offered to workers again, and its alert is closed.", "/alerts")


@acts("/alerts/{id:str}/ask-resolve", Right.OPERATE)
async def ask_resolve(desk: Desk) -> Response[bytes]:
    """Say what resolving does, and ask whether it is meant."""
    what = [
        "The alert is closed. A notification that is not final by now has failed: nobody delivers it any more.",
        "It stays among those that failed, and can be retried from there.",
    ]
    return desk.confirm(
        Asking("Resolve this alert?", what, "Resolve", f"/alerts/{desk.part('id')}/resolve", dangerous=True)
    )


@acts("/alerts/{id:str}/resolve", Right.OPERATE)
async def resolve(desk: Desk) -> Response[bytes]:
    """Close the alert; its notification has failed."""
    await desk.ask("POST", "/v1/alerts/{}/resolve", desk.part("id"))
    return desk.done("The alert is closed.", "/alerts")


PAGE = Page("alerts", "Alerts", [alerts, retry, ask_resolve, resolve])
