"""Routes of the page that a signed link opens: users read and change their preferences, and unsubscribe by a click."""

from __future__ import annotations

from typing import Annotated, Final

from litestar import Response, get, post
from litestar.params import PathParameter, RawBody
from msgspec import Meta, Struct

from waypost.domain.errors import ErrorCode, NotFound
from waypost.domain.ids import AppId
from waypost.domain.preference_link import LinkedUser, read_link_token
from waypost.domain.profile import NOBODY
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import PathApp, PathIdentity, user_in
from waypost.entrypoints.rest.serving import vouch_for
from waypost.features.parts import Ground
from waypost.features.preferences.page import (
    UNSUBSCRIBE,
    Shown,
    change_of,
    form_of,
    is_one_click,
    render,
    unsubscribing,
)
from waypost.features.preferences.routes import app_of, channels_of, ground_in
from waypost.features.preferences.settings import links_of
from waypost.features.preferences.views import view_of
from waypost.features.preferences.wording import WORDS, accepted, language_of
from waypost.stores.sql.preferences import Said

PathLink = Annotated[str, PathParameter(description="The signed token.")]
_HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
}


class PreferenceLinkView(Struct, frozen=True):
    """A link to the page on which a user changes preferences."""

    url: Annotated[str, Meta(description="The address. Whoever has it reads and changes what this user wants.")]


@get(
    "/v1/users/{user_id:str}/preferences/link",
    tags=["Preferences"],
    summary="Make a link to the page of a user's preferences",
    operation_id="getPreferenceLink",
    opt=speaks({200: PreferenceLinkView}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND,)),
)
async def make_link(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Sign a link that opens the user's preferences without a session, for as long as the secret stays the same."""
    links = links_of(ground_in(request).config)
    user = user_in(request.user, user_id)
    if links is None:
        raise NotFound("no links are made: preferences.secret_file is not set")
    return answer(200, PreferenceLinkView(links.url(request.user.app, LinkedUser(user))))


@get(
    "/p/{app:str}/{link:str}",
    tags=["Preferences"],
    summary="Show the page of a user's preferences",
    operation_id="getPreferencePage",
    opt=speaks({200: str}, None, codes=(ErrorCode.NOT_FOUND,)),
)
async def show_page(request: Call, app: PathApp, link: PathLink) -> Response[bytes]:
    """Show what the user wants. A GET changes nothing, since previews and scanners follow links."""
    return await _page(request, AppId(app), _linked(request, AppId(app), link))


@post(
    "/p/{app:str}/{link:str}",
    tags=["Preferences"],
    summary="Change preferences on their page, or unsubscribe",
    operation_id="postPreferencePage",
    status_code=200,
    opt=speaks({200: str}, None, body=bytes, body_required=False, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def change_page(request: Call, app: PathApp, link: PathLink, body: RawBody) -> Response[bytes]:
    """Take the page's form, or the one click of a mail program (`List-Unsubscribe=One-Click`, RFC 8058)."""
    named = AppId(app)
    user = _linked(request, named, link)
    ground, form, now = ground_in(request), form_of(body), api_of(request).clock.now()
    settings, channels = app_of(ground, named), channels_of(ground, named)
    by = "one click" if is_one_click(body) else "link"
    is_leaving = bool(user.channel) and (is_one_click(body) or UNSUBSCRIBE in form)
    if is_leaving:
        change = unsubscribing(user, settings)
    elif "save" in form:
        said = await _said(ground, named, user)
        change = change_of(form, view_of(said, settings, channels, None), sorted(channels))
    else:
        return await _page(request, named, user)
    await ground.store.preferences.change(named, user.user_id, change, now, by)
    return await _page(request, named, user, is_left=is_leaving, is_saved=not is_leaving)


def _linked(request: Call, app: AppId, token: str) -> LinkedUser:
    """Read who a link is of; NotFound where it is none of ours."""
    links = links_of(ground_in(request).config)
    user = None if links is None else read_link_token(links.secret, app, token)
    if user is None:
        raise NotFound("no such link")
    vouch_for(request.scope)
    return user


async def _said(ground: Ground, app: AppId, user: LinkedUser) -> Said:
    return (await ground.store.preferences.of(app, [user.user_id])).get(user.user_id, Said())


async def _page(
    request: Call, app: AppId, user: LinkedUser, *, is_left: bool = False, is_saved: bool = False
) -> Response[bytes]:
    ground = ground_in(request)
    profile = (await ground.store.profiles.of(app, [user.user_id])).get(user.user_id, NOBODY)
    language = language_of(profile.locale, *accepted(request.headers.get("accept-language")))
    words, settings = WORDS[language], app_of(ground, app)
    view = view_of(await _said(ground, app, user), settings, channels_of(ground, app), profile.time_zone)
    notice = words.unsubscribed if is_left else words.saved if is_saved else None
    said = render(Shown(view, settings, user, language, notice))
    headers = _HEADERS | {"content-language": language}
    return Response(said.encode(), status_code=200, headers=headers)


ROUTES = [make_link, show_page, change_page]
