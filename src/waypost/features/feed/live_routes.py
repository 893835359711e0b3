"""Routes of live connections: a ticket for browsers, and the connection itself."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from litestar import Response, get, post
from litestar.params import QueryParameter
from msgspec import Meta, Struct

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, WaypostError
from waypost.domain.ids import CallerId
from waypost.domain.time import SECOND_MS, isoformat, later
from waypost.entrypoints.access import READS_OWN, admit
from waypost.entrypoints.admission import caller_of
from waypost.entrypoints.callers import presented
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.live.connection import EventStream, Reader, WebSocket
from waypost.entrypoints.live.messages import EVENT_STREAM_HEAD, accepting_head
from waypost.entrypoints.live.settings import FeedSettings
from waypost.entrypoints.live.tickets import make_ticket, read_ticket
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Api, Call, api_of, ground_of
from waypost.entrypoints.rest.cors import fields_for
from waypost.entrypoints.rest.parameters import PathIdentity, user_in
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.rest.serving import take_over, vouch_for
from waypost.entrypoints.rest.views import Timestamp
from waypost.features.parts import Ground
from waypost.pipeline.intake import Caller

PATH: Final = "/live"
_WEB_SOCKET_VERSION: Final = "13"
"""The one version that there is (RFC 6455, section 4.4)."""


class Ticket(Struct, frozen=True):
    """A credential for one user's live connection, for the query of its URL."""

    ticket: str
    expires_at: Annotated[Timestamp, Meta(description="When it opens no connection any more.")]


TicketGiven = Annotated[
    str | None,
    QueryParameter(max_length=1024, description="A ticket, where no header can be sent.", required=False),
]
SinceGiven = Annotated[
    str | None,
    QueryParameter(max_length=128, description="The `cursor` of the last message that was seen.", required=False),
]


@post(
    "/v1/users/{user_id:str}/live-tickets",
    tags=["Feed"],
    summary="Make a ticket for a live connection",
    operation_id="postLiveTicket",
    status_code=201,
    opt=speaks({201: Ticket}, READS_OWN, codes=WRITE_CODES),
)
async def post_ticket(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """Make a credential that a browser can put into the URL of a web socket or an event stream."""
    ground, reader = _ground(request), Reader(request.user.app, user_in(request.user, user_id))
    settings: FeedSettings = ground.settings
    expires_at = later(ground.clock.now(), settings.ticket_s * SECOND_MS)
    ticket = make_ticket(await ground.store.feed_secret.get(), reader, expires_at)
    return answer(201, Ticket(ticket, isoformat(expires_at)))


@get(
    PATH,
    tags=["Feed"],
    summary="Follow a user's feed",
    operation_id="getLive",
    opt=speaks(
        {200: str},
        None,
        meanings={200: "Events, without end; a web socket (101) where the request asks for one."},
        codes=(ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN, ErrorCode.RATE_LIMITED, ErrorCode.STORAGE_BUSY),
    ),
)
async def live(request: Call, ticket: TicketGiven = None, since: SinceGiven = None) -> Response[bytes]:
    """Follow the feed of the user whose token or ticket this is: as a web socket, or as an event stream."""
    ground, api = _ground(request), api_of(request)
    _check_origin(request, api)
    is_upgrade = "upgrade" in request.headers.get("connection", "").lower()
    is_socket = is_upgrade and request.headers.get("upgrade", "").lower() == "websocket"
    head = _socket_head(request) if is_socket else _stream_head(request, api)
    reader = await _reader(request, ground, api, ticket)
    hub = ground.live
    assert hub is not None, "a process that serves it has one"
    address = api.limits.address_of(_visit(request))
    hub.check_room(address)
    vouch_for(request.scope)
    seen = since or request.headers.get("last-event-id")
    place = None if seen is None else cursors.place(seen)
    settings: FeedSettings = ground.settings
    kind = WebSocket if is_socket else EventStream
    connection = kind(hub, reader, address, place, ground.clock.monotonic() + settings.age_limit_s)
    transport = take_over(request.scope, head + b"\r\n", connection)
    if transport is None:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "a live connection begins with its request alone", closes=True)
    hub.join(connection, transport)
    return Response(b"", status_code=200, media_type="text/event-stream")


async def _reader(request: Call, ground: Ground, api: Api, ticket: str | None) -> Reader:
    """Find the user; WaypostError where the credential is none, is not a user's, or the user is over a limit."""
    visit = _visit(request)
    if ticket is None:
        credential = presented((name, value) for name, value in request.headers.items())
        caller = await caller_of(api.callers, api.limits, credential, visit)
    else:
        caller = await _bearer(ground, api, ticket, visit)
    await api.limits.enter(caller, visit, caller.user)
    if caller.user is None:
        why = "a live connection is one user's: give the user's own token, or a ticket"
        raise WaypostError(why, ErrorCode.FORBIDDEN)
    admit(caller, READS_OWN)
    return Reader(caller.app, caller.user)


async def _bearer(ground: Ground, api: Api, ticket: str, visit: Visit) -> Caller:
    """Find the user whose ticket this is: whoever made it could read for them."""
    found = read_ticket(await ground.store.feed_secret.get(), ticket, ground.clock.now())
    if found is None or found.app not in api.device_caps:
        await api.limits.count_unvouched(visit)
        raise WaypostError("the ticket is not valid, or over: make another one", ErrorCode.UNAUTHENTICATED)
    return Caller(found.app, CallerId(f"user:{found.user_id}"), frozenset({READS_OWN.scope}), found.user_id)


def _visit(request: Call) -> Visit:
    client: Any = request.scope["client"]
    return Visit(f"GET {PATH}", (client or ("",))[0], partial(_values, request))


def _values(request: Call, name: str) -> list[str]:
    return request.headers.getall(name, [])


def _check_origin(request: Call, api: Api) -> None:
    """Refuse a web page of another host that may not call the API (RFC 6455, section 10.2)."""
    origin = request.headers.get("origin")
    if origin is None or origin in api.settings.cors_origins:
        return
    if origin.partition("://")[2] != request.headers.get("host"):
        raise WaypostError("pages of this origin may not call: see rest.cors_origins", ErrorCode.FORBIDDEN)


def _socket_head(request: Call) -> bytes:
    """Make the head of the answer to a web socket's request; InvalidRequest where that is none."""
    key, version = request.headers.get("sec-websocket-key"), request.headers.get("sec-websocket-version")
    if key is None or version != _WEB_SOCKET_VERSION:
        raise InvalidRequest((Fault("Sec-WebSocket-Key", "a web socket of version 13 begins with one"),))
    return accepting_head(key)


def _stream_head(request: Call, api: Api) -> bytes:
    if "text/event-stream" not in request.headers.get("accept", ""):
        raise InvalidRequest((Fault("Accept", "ask for a web socket, or accept text/event-stream"),))
    fields = fields_for(request.scope, api.settings.cors_origins)
    return EVENT_STREAM_HEAD + b"".join(b"%s: %s\r\n" % field for field in fields)


def _ground(request: Call) -> Ground:
    ground: Ground = ground_of(request, "feed")
    return ground


ROUTES = [post_ticket, live]
