"""Keys and audit: who may call the API, and who ordered what."""

from __future__ import annotations

from litestar import Response

from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.looking import SHOWN
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.ports.audit import Act


@shows("/access", Right.OPERATE)
async def access(desk: Desk) -> Response[bytes]:
    """List the keys, and the record of orders, the newest first."""
    query = {name: desk.given(name) for name in ("act", "by", "cursor")}
    record = await desk.ask("GET", "/v1/audit", query=query | {"limit": SHOWN})
    keys = [] if query["cursor"] else (await desk.ask("GET", "/v1/keys"))["items"]
    return desk.show("access.html", keys=keys, record=record, wanted=query, acts=[each.value for each in Act])


@acts("/access/keys/{prefix:str}/ask-revoke", Right.ADMINISTER)
async def ask_revoke(desk: Desk) -> Response[bytes]:
    """Say what revoking does, and ask whether it is meant."""
    prefix = desk.part("prefix")
    what = [
        f"Whoever calls with the key {prefix} is refused from now on. That cannot be undone.",
        "To give its caller another one first, rotate it: waypost keys rotate.",
    ]
    return desk.confirm(Asking(f"Revoke {prefix}?", what, "Revoke it", f"/access/keys/{prefix}/revoke", dangerous=True))


@acts("/access/keys/{prefix:str}/revoke", Right.ADMINISTER)
async def revoke(desk: Desk) -> Response[bytes]:
    """Revoke a key."""
    await desk.ask("DELETE", "/v1/keys/{}", desk.part("prefix"))
    return desk.done(f"{desk.part('prefix')} is revoked.", "/access")


PAGE = Page("access", "Keys and audit", [access, ask_revoke, revoke], Right.OPERATE)
