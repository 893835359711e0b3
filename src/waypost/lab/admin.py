"""The lab's own API: devices, the fault script, what arrived, and whether that is what was meant."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec

from waypost.lab.apns_identity import EnvironmentReason, Providers, SigningKey
from waypost.lab.browsers import Browsers
from waypost.lab.client_certificates import issue
from waypost.lab.counterparts import FurtherGateway
from waypost.lab.credentials import pem
from waypost.lab.faults import FaultRule, Faults, parse_rules
from waypost.lab.jose import from_base64url
from waypost.lab.oauth import OAuthGateway
from waypost.lab.pace import Queue
from waypost.lab.push_services import SERVICES, subscription_id
from waypost.lab.received import counts, page, summary
from waypost.lab.records import Records
from waypost.lab.screen import screen
from waypost.lab.settings import LabSettings, LabUrls
from waypost.lab.subscriptions import Transport, described
from waypost.lab.tokens import KnownTokens, Platform
from waypost.lab.verification import Expectation, verify
from waypost.lab.webpush import WebPushGateway

_MAX_AT_ONCE = 100_000
_MAX_REQUEST_BYTES = 256 * 1024 * 1024
"""Room for the expectations of a run with a million pushes."""
T = TypeVar("T")


class _Subscribe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int | None = None
    service: str = "rfc"
    transport: Transport = "h2"
    vapid_public_key: str | None = None


class _MakeTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    platform: Platform
    count: int = 1
    topic: str | None = None
    environment: Literal["production", "sandbox"] | None = None


class _AddKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key_id: str
    team_id: str
    topics: tuple[str, ...]
    environment: Literal["production", "sandbox"] | None = None
    environment_reason: EnvironmentReason = "BadEnvironmentKeyInToken"


class _Certify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topics: tuple[str, ...]
    environments: tuple[Literal["production", "sandbox"], ...] = ("production", "sandbox")
    days: float = 365.0


class _Kill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    at: int | None = None


class Controls(Protocol):
    """The controls of a running lab: what can be asked and changed."""

    settings: LabSettings
    urls: LabUrls
    faults: Faults
    queues: dict[str, Queue]
    records: Records
    tokens: KnownTokens
    oauth: OAuthGateway
    providers: Providers
    webpush: WebPushGateway
    browsers: Browsers
    further: dict[str, FurtherGateway]

    async def script(self, rules: list[FaultRule]) -> None:
        """Put fault rules in force."""


class Admin:
    """The admin API: plain HTTP/1.1 on loopback; every answer is JSON, every refusal has an `error`."""

    def __init__(self, lab: Controls) -> None:
        self._lab = lab
        app = web.Application(client_max_size=_MAX_REQUEST_BYTES, middlewares=[_errors_as_json])
        app.add_routes(
            [
                web.get("/", self._index),
                web.post("/subscriptions", self._subscribe),
                web.get("/browsers", self._show_browsers),
                web.post("/devices/{gateway}", self._make_device),
                web.post("/tokens", self._make_tokens),
                web.post("/tokens/{token:.+}/kill", self._kill),
                web.post("/apns/keys", self._add_key),
                web.delete("/apns/keys/{key_id}", self._revoke_key),
                web.post("/apns/certificates", self._certify),
                web.delete("/apns/certificates/{serial}", self._revoke_certificate),
                web.post("/oauth/revoke", self._revoke),
                web.get("/faults", self._show_faults),
                web.post("/faults", self._set_faults),
                web.delete("/faults", self._clear_faults),
                web.get("/queues", self._queues),
                web.get("/received", self._received),
                web.get("/screen", self._screen),
                web.get("/counts", self._counts),
                web.get("/summary", self._summary),
                web.post("/verify", self._verify),
                web.post("/reset", self._reset),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def open(self, host: str, port: int) -> str:
        """Listen, and say where."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        real_port = self._runner.addresses[0][1]
        return f"http://{f'[{host}]' if ':' in host else host}:{real_port}"

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _index(self, _request: web.Request) -> web.Response:
        return _json(self._lab.urls.by_name())

    async def _subscribe(self, request: web.Request) -> web.Response:
        wanted = await _body(request, _Subscribe)
        if wanted.service not in SERVICES:
            raise ValueError(f"service must be one of {', '.join(SERVICES)}")
        count = _sane(1 if wanted.count is None else wanted.count)
        key = from_base64url(wanted.vapid_public_key) if wanted.vapid_public_key else None
        gateway = self._lab.webpush
        made = gateway.subscriptions.make(count, service=wanted.service, vapid_key=key, transport=wanted.transport)
        shown = [described(subscription, gateway.endpoint(subscription)) for subscription in made]
        return _json(shown[0] if wanted.count is None else {"subscriptions": shown}, status=201)

    async def _show_browsers(self, _request: web.Request) -> web.Response:
        return _json({"browsers": self._lab.browsers.shown()})

    async def _make_device(self, request: web.Request) -> web.Response:
        """Make a device at one of the further gateways."""
        gateway = self._lab.further.get(request.match_info["gateway"])
        if gateway is None:
            raise ValueError(f"there are devices at {', '.join(self._lab.further)}")
        return _json(gateway.make(await _body(request, dict[str, Any])).shown, status=201)

    async def _make_tokens(self, request: web.Request) -> web.Response:
        wanted = await _body(request, _MakeTokens)
        made = self._lab.tokens.make(
            wanted.platform, _sane(wanted.count), topic=wanted.topic, environment=wanted.environment
        )
        return _json({"tokens": made}, status=201)

    async def _kill(self, request: web.Request) -> web.Response:
        at_ms = (await _body(request, _Kill)).at
        token = request.match_info["token"]
        token = subscription_id(token) if token.startswith("http") else token
        self._lab.tokens.deaths[token] = int(self._lab.settings.clock() * 1000) if at_ms is None else at_ms
        return _json({"token": token, "at": self._lab.tokens.deaths[token]})

    async def _add_key(self, request: web.Request) -> web.Response:
        """Make a further provider key, as Apple's developer portal does, and hand out its private half."""
        wanted = await _body(request, _AddKey)
        private = ec.generate_private_key(ec.SECP256R1())
        key = SigningKey(
            wanted.key_id, wanted.team_id, private.public_key(), wanted.topics, wanted.environment,
            wanted.environment_reason,
        )  # fmt: skip
        self._lab.providers.add_key(key)
        return _json({"private_key": pem(private).decode()}, status=201)

    async def _revoke_key(self, request: web.Request) -> web.Response:
        return _json({"revoked": self._lab.providers.revoke_key(request.match_info["key_id"])})

    async def _certify(self, request: web.Request) -> web.Response:
        """Make a client certificate, with its key and chain; with negative days it has ended already."""
        wanted = await _body(request, _Certify)
        if not wanted.topics:
            raise ValueError("topics must name at least the bundle id")
        serial, made = issue(self._lab.settings.directory, wanted.topics, wanted.environments, days=wanted.days)
        return _json({"serial": str(serial), "certificate": made.decode()}, status=201)

    async def _revoke_certificate(self, request: web.Request) -> web.Response:
        self._lab.providers.revoked_certificates.add(int(request.match_info["serial"]))
        return _json({"revoked": True})

    async def _revoke(self, _request: web.Request) -> web.Response:
        return _json({"revoked": self._lab.oauth.revoke_all()})

    async def _show_faults(self, _request: web.Request) -> web.Response:
        faults = self._lab.faults
        return _json({"rules": faults.rules, "met": faults.met()})

    async def _set_faults(self, request: web.Request) -> web.Response:
        document = await _body(request, Any)
        await self._lab.script(parse_rules(document["rules"] if isinstance(document, dict) else document))
        return await self._show_faults(request)

    async def _clear_faults(self, request: web.Request) -> web.Response:
        await self._lab.script([])
        return await self._show_faults(request)

    async def _queues(self, _request: web.Request) -> web.Response:
        return _json({name: queue.state for name, queue in self._lab.queues.items()})

    async def _received(self, request: web.Request) -> web.Response:
        query = request.query
        records = self._lab.records
        found = page(
            records, gateway=query.get("gateway"), token=_as_token(query.get("token")),
            notification_id=query.get("notification_id"), after=int(query.get("after", -1)),
            limit=int(query.get("limit", 100)),
        )  # fmt: skip
        return _json({"received": found, "next": found[-1]["seq"] if found else None, "evicted": records.evicted})

    async def _screen(self, request: web.Request) -> web.Response:
        return _json({"shown": screen(self._lab.records, _as_token(request.query["token"]) or "")})

    async def _counts(self, _request: web.Request) -> web.Response:
        return _json(counts(self._lab.records))

    async def _summary(self, _request: web.Request) -> web.Response:
        return _json(summary(self._lab.records))

    async def _verify(self, request: web.Request) -> web.Response:
        expectation = await _body(request, Expectation)
        return _json(verify(expectation, self._lab.records))

    async def _reset(self, _request: web.Request) -> web.Response:
        """Forget what arrived, the fault script and the deaths; devices, tokens and connections stay."""
        await self._lab.script([])  # first: what waits in a queue arrives by it
        for queue in self._lab.queues.values():
            queue.reset()
        self._lab.records.reset()
        self._lab.tokens.deaths.clear()
        return _json({"reset": True})


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _json({"error": error.reason}, status=error.status)
    except (ValueError, msgspec.MsgspecError, KeyError) as error:
        return _json({"error": str(error)}, status=400)


async def _body(request: web.Request, form: type[T]) -> T:
    return msgspec.json.decode(await request.read() or b"{}", type=form)


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


def _as_token(text: str | None) -> str | None:
    """Take an endpoint for the subscription it names."""
    return subscription_id(text) if text and text.startswith("http") else text


def _sane(count: int) -> int:
    if not 1 <= count <= _MAX_AT_ONCE:
        raise ValueError(f"count must be between 1 and {_MAX_AT_ONCE}")
    return count
