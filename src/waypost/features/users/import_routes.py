"""The route by which many users' profiles come at once."""

from __future__ import annotations

from litestar import Response, post

from waypost.domain.errors import ErrorCode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.lists import lines_in
from waypost.features.users.importing import Imported, import_users, read_line
from waypost.features.users.routes import FEATURE, KEEPS_USERS


@post(
    "/v1/users",
    tags=["Users"],
    summary="Import users",
    operation_id="importUsers",
    status_code=200,
    opt=speaks(
        {200: Imported},
        KEEPS_USERS,
        meanings={200: "All of it was read; faulty lines were left out."},
        codes=(ErrorCode.TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE, *WRITE_CODES),
    ),
)
async def import_(request: Call) -> Response[bytes]:
    """Change the profiles of many users. What a line does not name stays as it is.

    Takes NDJSON (`application/x-ndjson`): one object a line, `user_id`, `locale`, `time_zone`, `attributes`; or CSV
    (`text/csv`): a head line that names the columns, one of them `user_id`; others are attributes, such as
    `age:number`. The list is processed while it is received. Where the connection breaks, send it again.
    """
    api = api_of(request)
    lines = lines_in(request.scope["headers"], request.receive, api.settings, read_line)
    profiles = ground_of(request, FEATURE).store.profiles
    return answer(200, await import_users(lines, request.user.app, profiles, api.clock))


IMPORT_ROUTES = [import_]
