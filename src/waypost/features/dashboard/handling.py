"""How a page is added.

A page is a module in ``pages/`` with a ``PAGE`` (see ``site.Page``) that stands in the list of ``pages/__init__.py``,
and templates in ``templates/`` that extend ``base.html``. Its handlers take a Desk and return an answer::

    @shows("/orders/{order_id:str}")
    async def order(desk: Desk) -> Response[bytes]:
        found = await desk.ask("GET", "/v1/orders/{}", desk.part("order_id"))
        return desk.show("order.html", order=found)


    @acts("/orders/{order_id:str}/cancel", Right.OPERATE)
    async def cancel(desk: Desk) -> Response[bytes]:
        await desk.ask("POST", "/v1/orders/{}/cancel", desk.part("order_id"))
        return desk.done("Cancelled.", "/orders")

* Paths begin with the page's name and stand below ``/dashboard/{app}``.
* ``desk.ask`` calls the API's own routes, with what they check, limit and put on record. Pages have no SQL. What no
  route tells is read from the ports in ``desk.api`` and ``desk.ground``, by a key or by pages.
* Who may not is refused before the handler runs, and so is a post without the form's token: ``{{ ui.token(csrf) }}``
  in each form. ``desk.confirm(Asking(...))`` asks first. ``desk.may(Right.OPERATE)``, in templates
  ``desk.may(R.OPERATE)``, leaves out buttons.
* What is raised as a WaypostError becomes a page that says it.
* ``templates/ui.html`` has the pieces: ``table`` with ``cell``, ``pager``, ``empty``, ``facts``, ``token``. No script
  and no style in a page: the browser is told to refuse both. ``static/page.js`` has the little script there is.
* ``@shows("/orders", every_s=5)`` lets a page be followed: it is made again every 5 seconds, and the parts of it that
  have ``{{ ui.live("id") }}`` are put in place of those that are there, where anything has changed (``live`` says how).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from waypost.domain.errors import ErrorCode, NotFound, WaypostError
from waypost.domain.ids import AppId
from waypost.features.dashboard.desk import FOLDER, Asked, Desk, Handler
from waypost.features.dashboard.foreign import refuse_foreign, refuse_forged, refuse_nul
from waypost.features.dashboard.live import asks_to_follow, follow
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Site

Wrapped = Callable[[Handler], HTTPRouteHandler]
_PREFIX: Final = f"{FOLDER}/{{app:str}}"


def shows(path: str, needs: Right = Right.READ, every_s: float | None = None) -> Wrapped:
    """Make a handler of GET requests to *path* below the app; it changes nothing.

    With *every_s* the page may be followed.
    """

    def wrap(handler: Handler) -> HTTPRouteHandler:
        async def answered(request: Asked) -> Response[bytes]:
            if every_s is not None and asks_to_follow(request):
                return await follow(request, lambda: _enter(request, path, needs), handler, every_s)
            return await handler(await _enter(request, path, needs))

        return get(_PREFIX + path)(answered)

    return wrap


def acts(path: str, needs: Right) -> Wrapped:
    """Make a handler of a form that is posted to *path* below the app, by people who have a right."""

    def wrap(handler: Handler) -> HTTPRouteHandler:
        async def answered(request: Asked) -> Response[bytes]:
            desk = await _enter(request, path, needs)
            refuse_forged(request, desk.form.get("csrf", ""))
            return await handler(desk)

        return post(_PREFIX + path, status_code=200)(answered)

    return wrap


async def _enter(request: Asked, path: str, needs: Right) -> Desk:
    """Let a person in who may; WaypostError otherwise."""
    site: Site = request.app.state.site
    request.scope["state"]["body"] = body = await request.body()
    refuse_foreign(request)
    refuse_nul(request, body)
    operator = await request.app.state.gate.operator(request)
    app = AppId(request.path_params["app"])
    if app not in site.ground.config.apps:
        raise NotFound("no such app")
    if not operator.may(needs):
        why = f"this takes the right to {needs}, which the role {operator.role} does not have"
        raise WaypostError(why, ErrorCode.FORBIDDEN)
    name = path.split("/")[1]
    page = next(each for each in site.pages if each.name == name)
    return Desk(site, request, operator, app, page, needs)
