"""Routes of series: put one, look at it, remove it; let a user join, see where they are, let them leave."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import PathParameter, RawBody
from msgspec.structs import replace

from waypost.domain.errors import ErrorCode, NotFound, Unavailable, WaypostError
from waypost.domain.ids import UserId
from waypost.domain.local_time import UTC_NAME
from waypost.domain.series import Member, MemberState, Series, exited, joined
from waypost.entrypoints.access import READS, SENDS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import INTAKE_CODES, WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import Limit, LongCursor, NameText, PathIdentity, text_in, user_in
from waypost.entrypoints.rest.recording import record
from waypost.features.parts import Ground
from waypost.features.series.making import is_same, made_of
from waypost.features.series.views import (
    Joining,
    Leaving,
    MemberView,
    SeriesDetail,
    SeriesMemberPage,
    SeriesPage,
    SubmittedSeries,
    detail,
    member_view,
    series_view,
)
from waypost.ports.audit import Act
from waypost.stores.sql.series import SqlSeries

FEATURE: Final = "series"
_E = ErrorCode
_TRIES: Final = 5

_said = msgspec.json.Decoder(SubmittedSeries)
_joining = msgspec.json.Decoder(Joining)
_leaving = msgspec.json.Decoder(Leaving)
PathSeries = Annotated[str, PathParameter(description="The series' name.")]


@put(
    "/v1/series/{series:str}",
    tags=["Series"],
    summary="Put a series",
    operation_id="putSeries",
    opt=speaks(
        {200: SeriesDetail, 201: SeriesDetail},
        SENDS,
        body=SubmittedSeries,
        example={
            "steps": [
                {"name": "welcome", "notification": {"title": "Welcome"}},
                {"name": "reminder", "after": "2d", "at": "09:00", "notification": {"title": "Your basket waits"}},
            ],
            "exit_on": ["order_paid"],
        },
        meanings={200: "It says this already.", 201: "A new version."},
        codes=INTAKE_CODES,
    ),
)
async def put_series(request: Call, series: PathSeries, body: RawBody) -> Response[bytes]:
    """Put a version of the series, which never changes: who joins from now on begins with it, running members end
    with the one that they began with.
    """
    name, said, api = _name(series), decode(_said, body), api_of(request)
    made = await made_of(name, said, request.user, api.intake, api.clock.now())
    await record(request, Act.SERIES_PUT, [name])
    for _ in range(_TRIES):
        latest = await _store(request).latest(request.user.app, name)
        if latest is not None and is_same(latest, made):
            return answer(200, detail(latest, await _store(request).counts(latest.app, name)))
        version = replace(made, version=1 if latest is None else latest.version + 1)
        if await _store(request).add(version):
            return answer(201, detail(version, await _store(request).counts(made.app, name)))
    raise Unavailable("the series is being changed by others")


@get(
    "/v1/series",
    tags=["Series"],
    summary="List series",
    operation_id="listSeries",
    opt=speaks({200: SeriesPage}, READS, codes=(_E.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List series by name, in their newest version."""
    found = await _store(request).page(request.user.app, cursors.name(cursor), limit)
    following = cursors.of_name([each.name for each in found], limit)
    return answer(200, SeriesPage(tuple(map(series_view, found)), following))


@get(
    "/v1/series/{series:str}",
    tags=["Series"],
    summary="Look up a series",
    operation_id="getSeries",
    opt=speaks({200: SeriesDetail}, READS, codes=(_E.NOT_FOUND,)),
)
async def look_up(request: Call, series: PathSeries) -> Response[bytes]:
    """Return the newest version, and the number of members by state."""
    found = await _found(request, _name(series))
    return answer(200, detail(found, await _store(request).counts(found.app, found.name)))


@delete(
    "/v1/series/{series:str}",
    tags=["Series"],
    summary="Remove a series",
    operation_id="deleteSeries",
    status_code=204,
    opt=speaks({204: None}, SENDS, codes=(_E.NOT_FOUND, *WRITE_CODES)),
)
async def remove(request: Call, series: PathSeries) -> None:
    """Remove all of its versions and members: nobody is told anything more."""
    name = _name(series)
    await record(request, Act.SERIES_REMOVED, [name])
    if not await _store(request).remove(request.user.app, name):
        raise NotFound("no such series")


@put(
    "/v1/series/{series:str}/members/{user_id:str}",
    tags=["Series"],
    summary="Let a user join a series",
    operation_id="joinSeries",
    opt=speaks(
        {200: MemberView, 201: MemberView},
        SENDS,
        body=Joining,
        body_required=False,
        example={"data": {"plan": "premium"}},
        meanings={200: "A member already.", 201: "Joined."},
        codes=(_E.NOT_FOUND, _E.WRONG_STATE, *WRITE_CODES),
    ),
)
async def join(request: Call, series: PathSeries, user_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Begin with the newest version. Who is a member already goes on as before; who is through, or left, begins anew
    with `again`, else 409 `wrong_state`.
    """
    said = decode(_joining, body) if body else Joining()
    found, user = await _found(request, _name(series)), user_in(request.user, user_id)
    api, store = api_of(request), _store(request)
    zones = {} if api.intake.zones is None else await api.intake.zones(found.app, [user])
    made = joined(found, user, zones[user].name if user in zones else UTC_NAME, api.clock.now(), said.data)
    for _ in range(_TRIES):
        if await store.join(made, api.clock.now()):
            return answer(201, member_view(made, found))
        before = await _member(request, found.name, user)
        if before.state is MemberState.ACTIVE:
            return answer(200, await _view(request, before))
        if not said.again:
            raise WaypostError(f"the user is {before.state} already: say again", _E.WRONG_STATE)
        if before.claimed_at is None and await store.replace(before, made, api.clock.now()) is not None:
            return answer(201, member_view(made, found))
    raise Unavailable("the member is being changed by others")


@get(
    "/v1/series/{series:str}/members",
    tags=["Series"],
    summary="List the members of a series",
    operation_id="listMembers",
    opt=speaks({200: SeriesMemberPage}, READS, codes=(_E.NOT_FOUND, _E.INVALID_CURSOR)),
)
async def members(request: Call, series: PathSeries, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List members by user, with where they are."""
    found = await _found(request, _name(series))
    page = await _store(request).members(found.app, found.name, cursors.name(cursor), limit)
    versions = {found.version: found}
    for each in {member.version for member in page} - versions.keys():
        if (version := await _store(request).version(found.app, found.name, each)) is not None:
            versions[each] = version
    items = tuple(member_view(each, versions.get(each.version)) for each in page)
    return answer(200, SeriesMemberPage(items, cursors.of_name([each.user_id for each in page], limit)))


@get(
    "/v1/series/{series:str}/members/{user_id:str}",
    tags=["Series"],
    summary="Look up a member of a series",
    operation_id="getMember",
    opt=speaks({200: MemberView}, READS, codes=(_E.NOT_FOUND,)),
)
async def member(request: Call, series: PathSeries, user_id: PathIdentity) -> Response[bytes]:
    """Return where the member is, and what became of each step before."""
    return answer(200, await _view(request, await _member(request, _name(series), user_in(request.user, user_id))))


@post(
    "/v1/series/{series:str}/members/{user_id:str}/exit",
    tags=["Series"],
    summary="Let a member leave a series",
    operation_id="exitSeries",
    status_code=200,
    opt=speaks(
        {200: MemberView},
        SENDS,
        body=Leaving,
        body_required=False,
        example={"why": "asked by telephone"},
        codes=(_E.NOT_FOUND, *WRITE_CODES),
    ),
)
async def leave(request: Call, series: PathSeries, user_id: PathIdentity, body: RawBody) -> Response[bytes]:
    """Tell the member nothing more of it; a step that is being submitted in this moment is the last."""
    said = decode(_leaving, body) if body else Leaving()
    name, user = _name(series), user_in(request.user, user_id)
    for _ in range(_TRIES):
        before = await _member(request, name, user)
        after = exited(before, said.why or f"by {request.user.name}")
        if after is before or await _store(request).replace(before, after, api_of(request).clock.now()) is not None:
            return answer(200, await _view(request, after))
    raise Unavailable("the member is being changed by others")


def _name(path_part: str) -> str:
    return text_in(path_part, "series", NameText)


async def _found(request: Call, name: str) -> Series:
    found = await _store(request).latest(request.user.app, name)
    if found is None:
        raise NotFound("no such series")
    return found


async def _member(request: Call, name: str, user: UserId) -> Member:
    found = await _store(request).member(request.user.app, name, user)
    if found is None:
        raise NotFound("the series has no such member")
    return found


async def _view(request: Call, found: Member) -> MemberView:
    return member_view(found, await _store(request).version(found.app, found.series, found.version))


def _store(request: Call) -> SqlSeries:
    ground: Ground = ground_of(request, FEATURE)
    return ground.store.series


ROUTES = [put_series, listed, look_up, remove, join, members, member, leave]
