"""Routes of API keys: make, rotate, list and revoke those of the caller's own app."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.params import PathParameter, RawBody
from msgspec import Meta, Struct

from waypost.domain.errors import ErrorCode
from waypost.domain.ids import CallerId
from waypost.domain.scope import Scope
from waypost.domain.submission import Identity
from waypost.domain.time import DAY_MS, SECOND_MS, isoformat
from waypost.entrypoints.access import ADMINISTERS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.recording import record
from waypost.entrypoints.rest.views import Timestamp
from waypost.pipeline.keys import Record, make_key, revoke_key, rotate_key
from waypost.ports.keys import ApiKey

_YEAR_S = 366 * DAY_MS // SECOND_MS

_Lifetime = Annotated[int, Meta(ge=1, le=10 * _YEAR_S)]

PathPrefix = Annotated[str, PathParameter(description="The beginning of the key, such as `wp_4k2h7x3a`.")]


class WantedKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A key to create: its caller, scopes and lifetime."""

    caller: Annotated[
        Identity,
        Meta(description="The name of the caller, without a colon; it stays the same when the key is rotated."),
    ]
    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1, max_length=len(Scope))]
    expires_in: Annotated[_Lifetime | None, Meta(description="Seconds until it expires; never if omitted.")] = None


class Rotation(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a rotation; the body may be omitted."""

    overlap: Annotated[int, Meta(ge=0, le=_YEAR_S, description="Seconds for which both keys are valid.")] = 86_400


class KeyView(Struct, frozen=True):
    """A key without its secret."""

    prefix: str
    caller: str
    scopes: tuple[Scope, ...]
    created_at: Timestamp
    last_used_at: Annotated[Timestamp | None, Meta(description="Accurate to about a minute.")]
    expires_at: Timestamp | None
    revoked_at: Timestamp | None


class MadeKey(Struct, frozen=True):
    """A new key; *key* is shown only once."""

    key: Annotated[str, Meta(description="The whole key, as callers present it.")]
    stored: KeyView


class KeyList(Struct, frozen=True):
    """Every key of the app, oldest first."""

    items: tuple[KeyView, ...]


_wanted = msgspec.json.Decoder(WantedKey)
_rotation = msgspec.json.Decoder(Rotation)


@post(
    "/v1/keys",
    tags=["Keys"],
    summary="Create a key",
    operation_id="createKey",
    opt=speaks(
        {201: MadeKey},
        ADMINISTERS,
        body=WantedKey,
        example={"caller": "shop-backend", "scopes": ["send:any-user", "read"], "expires_in": 7_776_000},
        codes=WRITE_CODES,
    ),
)
async def create(request: Call, body: RawBody) -> Response[bytes]:
    """Create a key. It appears only in this answer; the store keeps its hash."""
    wanted, api = decode(_wanted, body), api_of(request)
    app, caller, scopes = request.user.app, CallerId(wanted.caller), frozenset(wanted.scopes)
    lifetime_ms = None if wanted.expires_in is None else wanted.expires_in * SECOND_MS
    made = await make_key(api.keys, _recording(request), app, caller, scopes, lifetime_ms, api.clock.now())
    return _shown_once(*made)


@get("/v1/keys", tags=["Keys"], summary="List keys", operation_id="listKeys", opt=speaks({200: KeyList}, ADMINISTERS))
async def listed(request: Call) -> Response[bytes]:
    """List the keys, oldest first, including revoked and expired ones."""
    keys = await api_of(request).keys.all(request.user.app)
    return answer(200, KeyList(tuple(map(_view, keys))))


@post(
    "/v1/keys/{prefix:str}/rotate",
    tags=["Keys"],
    summary="Rotate a key",
    operation_id="rotateKey",
    opt=speaks(
        {201: MadeKey},
        ADMINISTERS,
        body=Rotation,
        body_required=False,
        example={"overlap": 3_600},
        codes=(ErrorCode.NOT_FOUND, *WRITE_CODES),
    ),
)
async def rotate(request: Call, prefix: PathPrefix, body: RawBody) -> Response[bytes]:
    """Create a new key for the same caller with the same scopes and lifetime; the old key ends after the overlap."""
    wanted, api = decode(_rotation, body) if body else Rotation(), api_of(request)
    overlap_ms, now = wanted.overlap * SECOND_MS, api.clock.now()
    made = await rotate_key(api.keys, _recording(request), prefix, overlap_ms, now, request.user.app)
    return _shown_once(*made)


@delete(
    "/v1/keys/{prefix:str}",
    tags=["Keys"],
    summary="Revoke a key",
    operation_id="revokeKey",
    status_code=204,
    opt=speaks({204: None}, ADMINISTERS, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def revoke(request: Call, prefix: PathPrefix) -> None:
    """Revoke the key; every process refuses it within `rest.key_cache_s`."""
    api = api_of(request)
    await revoke_key(api.keys, _recording(request), prefix, api.clock.now(), request.user.app)


def _recording(request: Call) -> Record:
    return lambda act, key: record(request, act, [key.prefix])


def _shown_once(text: str, stored: ApiKey) -> Response[bytes]:
    shown = answer(201, MadeKey(text, _view(stored)))
    shown.headers["cache-control"] = "no-store"
    return shown


def _view(key: ApiKey) -> KeyView:
    times = (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)
    created_at, *others = (None if at is None else isoformat(at) for at in times)
    assert created_at is not None
    return KeyView(key.prefix, key.caller, tuple(sorted(key.scopes)), created_at, *others)


ROUTES = [create, listed, rotate, revoke]
