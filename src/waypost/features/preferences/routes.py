"""Routes of preferences: users read and change their own, the app those of its users."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from litestar import Response, get, patch
from litestar.params import RawBody

from waypost.config import AppSettings
from waypost.domain.credential import channel_of
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import NOBODY, ProfileChange, zone_faults
from waypost.domain.submission import NotificationType
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import PathIdentity, user_in
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import FEATURE
from waypost.features.preferences.views import PreferencesView, SubmittedPreferences, change_of, view_of
from waypost.features.preferences.wording import accepted
from waypost.stores.sql.preferences import Said

_submitted = msgspec.json.Decoder(SubmittedPreferences)


@get(
    "/v1/users/{user_id:str}/preferences",
    tags=["Preferences"],
    summary="Get a user's preferences",
    operation_id="getPreferences",
    opt=speaks({200: PreferencesView}, DEVICES_OWN),
)
async def get_preferences(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Return what the user wants to be sent, with what the app says where the user does not."""
    user = user_in(request.user, user_id)
    return answer(200, await _view(request, user))


@patch(
    "/v1/users/{user_id:str}/preferences",
    tags=["Preferences"],
    summary="Change a user's preferences",
    operation_id="patchPreferences",
    status_code=200,
    opt=speaks(
        {200: PreferencesView},
        DEVICES_OWN,
        body=SubmittedPreferences,
        example={"types": {"promotion": {"enabled": False}}, "quiet_hours": {"start": "22:00", "end": "07:00"}},
        codes=WRITE_CODES,
    ),
)
async def patch_preferences(request: Call, user_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Change what the user wants, from the next notification on that is routed, also of those that wait."""
    said = decode(_submitted, body)
    ground, app, user = ground_in(request), request.user.app, user_in(request.user, user_id)
    faults = list(_faults(said, app_of(ground, app), channels_of(ground, app)))
    if faults:
        raise InvalidRequest(tuple(faults))
    now = api_of(request).clock.now()
    if said.time_zone is not msgspec.UNSET:
        zone = ProfileChange(named=frozenset({"time_zone"}), time_zone=said.time_zone)
        await ground.store.profiles.change(app, user, zone, now)
    by = "app" if request.user.user is None else "user"
    await ground.store.preferences.change(app, user, change_of(said), now, by)
    return answer(200, await _view(request, user))


def app_of(ground: Ground, app: AppId) -> AppSettings:
    """Return the settings of *app*, of one without any the defaults."""
    return ground.config.apps.get(app) or AppSettings()


def channels_of(ground: Ground, app: AppId) -> frozenset[str]:
    """Name the channels of *app*; those that reach an app or a browser are `push`."""
    found = {channel_of(slot) for slot in app_of(ground, app).senders}
    return frozenset(ground.families.get(each, str(each)) for each in found)


async def _view(request: Call, user: UserId) -> PreferencesView:
    ground, app = ground_in(request), request.user.app
    said = (await ground.store.preferences.of(app, [user])).get(user, Said())
    profile = (await ground.store.profiles.of(app, [user])).get(user, NOBODY)
    languages = [*([profile.locale] if profile.locale else []), *accepted(request.headers.get("accept-language"))]
    return view_of(said, app_of(ground, app), channels_of(ground, app), profile.time_zone, languages)


def ground_in(request: Call) -> Ground:
    """Return what these routes work with."""
    ground: Ground = ground_of(request, FEATURE)
    return ground


def _faults(said: SubmittedPreferences, app: AppSettings, channels: Collection[str]) -> Iterator[Fault]:
    """Find what makes no sense in a change, or may not be changed by users."""
    if said.time_zone is not msgspec.UNSET:
        yield from zone_faults(said.time_zone)
    yield from _unknown(said.channels, "channels", channels)
    for name, change in said.types.items():
        path, settings = f"types.{name}", app.types.get(NotificationType(name))
        if settings is None:
            yield Fault(path, f"the app has no such type; there are {', '.join(app.types) or 'none'}")
        elif change is not None:
            yield from _unknown(change.channels, f"{path}.channels", channels)
            if settings.critical and (change.enabled is False or False in change.channels.values()):
                yield Fault(path, "users cannot turn it off")


def _unknown(named: Collection[str], path: str, channels: Collection[str]) -> Iterator[Fault]:
    for name in named:
        if name not in channels:
            yield Fault(f"{path}.{name}", f"the app has no such channel; there are {', '.join(sorted(channels))}")


ROUTES = [get_preferences, patch_preferences]
