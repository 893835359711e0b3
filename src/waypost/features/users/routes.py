"""Routes of users: what is known of one beside devices."""

from __future__ import annotations

import msgspec
from litestar import Response, get, patch, put
from litestar.params import RawBody

from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import UserId
from waypost.domain.profile import ATTRIBUTES_LIMIT, NOBODY, Profile, ProfileChange, zone_faults
from waypost.domain.scope import Scope
from waypost.entrypoints.access import Access
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import PathIdentity, user_in
from waypost.features.users.views import ProfileView, SubmittedChange, SubmittedProfile
from waypost.ports.profiles import Profiles

FEATURE = "users"
KEEPS_USERS = Access(Scope.DEVICES)
"""The app says who its users are; they themselves do not."""

_profile = msgspec.json.Decoder(SubmittedProfile)
_change = msgspec.json.Decoder(SubmittedChange)


@put(
    "/v1/users/{user_id:str}",
    tags=["Users"],
    summary="Put a user's profile",
    operation_id="putUser",
    opt=speaks(
        {200: ProfileView, 201: ProfileView},
        KEEPS_USERS,
        body=SubmittedProfile,
        example={"locale": "de-CH", "time_zone": "Europe/Zurich", "attributes": {"plan": "premium"}},
        meanings={200: "Replaced.", 201: "New."},
        codes=WRITE_CODES,
    ),
)
async def put_user(request: Call, user_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Say which language and time zone a user has, and what else the app knows of them. What is left out is removed."""
    said = decode(_profile, body)
    _refuse(zone_faults(said.time_zone))
    user = user_in(request.user, user_id)
    profile = Profile(locale=said.locale, time_zone=said.time_zone, attributes=said.attributes)
    is_new = await _profiles(request).put(request.user.app, user, profile, api_of(request).clock.now())
    return answer(201 if is_new else 200, _view(user, profile))


@patch(
    "/v1/users/{user_id:str}",
    tags=["Users"],
    summary="Change a user's profile",
    operation_id="patchUser",
    status_code=200,
    opt=speaks(
        {200: ProfileView},
        KEEPS_USERS,
        body=SubmittedChange,
        example={"attributes": {"plan": "premium", "trial_ends": None}},
        codes=WRITE_CODES,
    ),
)
async def patch_user(request: Call, user_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Change some fields, and attributes by name; null removes one. Everything else stays."""
    said = decode(_change, body)
    named = {name: value for name in ("locale", "time_zone") if (value := getattr(said, name)) is not msgspec.UNSET}
    _refuse(zone_faults(named.get("time_zone")))
    user = user_in(request.user, user_id)
    change = ProfileChange(named=frozenset(named), attributes=said.attributes, **named)
    profile = await _profiles(request).change(request.user.app, user, change, api_of(request).clock.now())
    if profile is None:
        raise InvalidRequest((Fault("attributes", f"the user would have more than {ATTRIBUTES_LIMIT}"),))
    return answer(200, _view(user, profile))


@get(
    "/v1/users/{user_id:str}",
    tags=["Users"],
    summary="Get a user's profile",
    operation_id="getUser",
    opt=speaks({200: ProfileView}, KEEPS_USERS),
)
async def get_user(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Return what is known of a user; nothing of an unknown one."""
    user = user_in(request.user, user_id)
    found = await _profiles(request).of(request.user.app, [user])
    return answer(200, _view(user, found.get(user, NOBODY)))


def _profiles(request: Call) -> Profiles:
    profiles: Profiles = ground_of(request, FEATURE).store.profiles
    return profiles


def _refuse(faults: list[Fault]) -> None:
    if faults:
        raise InvalidRequest(tuple(faults))


def _view(user: UserId, profile: Profile) -> ProfileView:
    return ProfileView(user, profile.locale, profile.time_zone, dict(profile.attributes))


ROUTES = [put_user, patch_user, get_user]
