"""The lab: builds the gateways, opens their ports, and stands until it is told to stop."""

import asyncio
import functools
import signal
import sys

import msgspec

from waypost.lab import credentials, fcm, webpush
from waypost.lab.admin import Admin
from waypost.lab.apns import ApnsGateway
from waypost.lab.apns_broadcast import BroadcastGateway
from waypost.lab.apns_channels import ChannelsGateway, ChannelTable
from waypost.lab.apns_identity import STREAMS, STREAMS_BEFORE_TOKEN, Providers, SigningKey
from waypost.lab.browsers import Browsers
from waypost.lab.client_certificates import CLIENT_CA
from waypost.lab.counterparts import Counterpart, FurtherGateway, GatewayContext, counterparts, gateway_names
from waypost.lab.exchange import Gateway
from waypost.lab.faults import FaultRule, Faults, read_rules
from waypost.lab.fcm import FcmGateway
from waypost.lab.framing import WireRules
from waypost.lab.listeners import Listener
from waypost.lab.metadata import MetadataGateway
from waypost.lab.oauth import TOKEN_PATH, KnownServiceAccount, OAuthGateway
from waypost.lab.pace import Queue
from waypost.lab.reception import Reception
from waypost.lab.records import Records
from waypost.lab.settings import LabSettings, LabUrls
from waypost.lab.subscriptions import Subscriptions
from waypost.lab.tokens import KnownTokens
from waypost.lab.webpush import WebPushGateway

_DUAL, _HTTP2, _HTTP1, _PLAIN = ["h2", "http/1.1"], ["h2"], ["http/1.1"], list[str]()
"""The protocols that a port negotiates by ALPN; without TLS there is nothing to negotiate."""


class Lab:
    """A lab with all its gateways. `start`, use `urls`, `stop`; one object runs once."""

    urls: LabUrls
    records: Records
    oauth: OAuthGateway
    providers: Providers
    fcm: FcmGateway
    webpush: WebPushGateway
    browsers: Browsers
    further: dict[str, FurtherGateway]

    def __init__(self, settings: LabSettings) -> None:
        self.settings = settings
        self.faults = Faults()
        self.tokens = KnownTokens(accept_any=settings.accept_any_token)
        self.queues = {name: Queue() for name in gateway_names()}
        self._listeners: dict[str, Listener] = {}
        self._flusher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Write missing credentials, then open every port. Raises OSError for a port in use."""
        settings = self.settings
        settings.directory.mkdir(parents=True, exist_ok=True)
        journal = settings.directory / "received.ndjson" if settings.journal else None
        self.records = Records(max_records=settings.max_records, max_bodies=settings.max_bodies, journal=journal)
        if settings.faults is not None:
            self._follow(read_rules(settings.faults))
        self._make_gateways(credentials.write_missing(settings.directory, settings.project_id, settings.topics))
        self.urls = await self._open_gateways()
        self._flusher = asyncio.create_task(self._flush_journal())

    def _make_gateways(self, made: credentials.Credentials) -> None:
        settings, strict, clock = self.settings, self.settings.strict, self.settings.clock
        account = KnownServiceAccount(made.service_account_email, made.service_account_key)
        self.oauth = OAuthGateway(account, lifetime_s=settings.access_token_lifetime_s, clock=clock)
        self._metadata = MetadataGateway(self.oauth, project_id=settings.project_id, email=account.email)
        key = SigningKey(settings.key_id, settings.team_id, made.apns_key, settings.topics)
        self.providers = Providers([key])
        self._apns = {
            name: ApnsGateway(name, self.providers, self.tokens, environment=environment, strict=strict, clock=clock)
            for name, environment in (("apns", settings.environment), ("apns_sandbox", "sandbox"))
        }
        channels = ChannelTable(limit=settings.channel_limit, enabled=settings.broadcast_topics)
        environment = settings.environment
        self._channels = ChannelsGateway(self.providers, channels, environment=environment, strict=strict, clock=clock)
        self._broadcast = BroadcastGateway(
            self.providers, channels, environment=environment, strict=strict, clock=clock
        )
        self.fcm = FcmGateway(
            settings.project_id, self.oauth, self.tokens, strict=strict, project_number=settings.project_number,
            quota_per_minute=settings.fcm_quota_per_minute, clock=clock,
        )  # fmt: skip
        subscriptions = Subscriptions(settings.directory / "subscriptions.ndjson")
        self.webpush = WebPushGateway(
            subscriptions, self.tokens.deaths, strict=strict, max_ttl_s=settings.webpush_max_ttl_s, clock=clock
        )
        self.browsers = Browsers(self.webpush, clock)
        place = GatewayContext(settings.directory, self.tokens.deaths, strict, clock)
        self.further = {each.name: each.build(place) for each in counterparts()}

    async def _open_gateways(self) -> LabUrls:
        settings = self.settings
        apple = WireRules(max_streams=STREAMS_BEFORE_TOKEN, max_streams_with_certificate=STREAMS)
        google = WireRules(
            max_streams=fcm.STREAMS, needs_alpn=True, max_unasked_pings=3, ends_with_empty_data=True,
            idle_s=settings.fcm_idle_s, max_age_s=settings.fcm_max_age_s,
        )  # fmt: skip
        plenty, push = WireRules(max_streams=100), WireRules(max_streams=webpush.STREAMS)
        oauth = await self._open("oauth", self.oauth, plenty, settings.oauth_port, _DUAL)
        self.oauth.url = oauth + TOKEN_PATH
        credentials.write_service_account(settings.directory, settings.project_id, self.oauth.url)
        self.webpush.origins = {
            "h2": await self._open("webpush", self.webpush, push, settings.webpush_port, _DUAL),
            "http1": await self._open("webpush_http1", self.webpush, push, settings.webpush_http1_port, _HTTP1),
            "plain": await self._open("webpush_plain", self.webpush, push, settings.webpush_plain_port, _PLAIN),
        }
        further: dict[str, str] = {}
        for each in counterparts():
            further |= await self._open_further(each, plenty)
            self.further[each.name].origin = further[each.name]
        self._admin = Admin(self)
        return LabUrls(
            apns=await self._open("apns", self._apns["apns"], apple, settings.apns_port, _HTTP2),
            apns_sandbox=await self._open(
                "apns_sandbox", self._apns["apns_sandbox"], apple, settings.apns_sandbox_port, _HTTP2
            ),
            apns_broadcast=await self._open(
                "apns_broadcast", self._broadcast, apple, settings.apns_broadcast_port, _HTTP2
            ),
            apns_channels=await self._open("apns_channels", self._channels, apple, settings.apns_channels_port, _HTTP2),
            fcm=await self._open("fcm", self.fcm, google, settings.fcm_port, _HTTP2),
            oauth=self.oauth.url,
            metadata=await self._open("metadata", self._metadata, plenty, settings.metadata_port, _PLAIN),
            webpush=self.webpush.origins["h2"],
            webpush_http1=self.webpush.origins["http1"],
            webpush_plain=self.webpush.origins["plain"],
            browsers=await self.browsers.open(settings.host, settings.browsers_port),
            admin=await self._admin.open(settings.host, settings.admin_port),
            further=further,
        )

    async def stop(self) -> None:
        """Close every port and connection and finish the journal."""
        if self._flusher is not None:
            self._flusher.cancel()
        await self._admin.close()
        await self.browsers.close()
        for queue in self.queues.values():
            queue.close()
        for listener in self._listeners.values():
            await listener.stop()
        self.records.close()

    def disconnect(self) -> None:
        """Break every connection that stands."""
        for listener in self._listeners.values():
            listener.disconnect()

    async def script(self, rules: list[FaultRule]) -> None:
        """Put fault rules in force, closing and opening ports as they say."""
        self._follow(rules)
        for listener in self._listeners.values():
            await listener.follow_script()

    def _follow(self, rules: list[FaultRule]) -> None:
        self.faults.replace(rules)
        for name, queue in self.queues.items():
            queue.follow(self.faults.pace(name))

    async def _open(self, name: str, gateway: Gateway, rules: WireRules, port: int, alpn: list[str]) -> str:
        """Open one port; with nothing to negotiate it is a plain one."""
        reception = self._reception(gateway)
        directory = self.settings.directory
        senders_ca = directory / CLIENT_CA if name.startswith("apns") else None
        context = credentials.tls_context(directory, alpn, senders_ca=senders_ca) if alpn else None
        http1 = "h2" not in alpn or "http/1.1" in alpn
        listener = Listener(reception, rules, context, host=self.settings.host, port=port, http1=http1)
        return f"{'https' if alpn else 'http'}://{await self._listen(name, listener)}"

    async def _open_further(self, each: Counterpart, rules: WireRules) -> dict[str, str]:
        """Open the ports of a further gateway; one that speaks no HTTP has one with TLS from the first byte, too."""
        gateway, speak, ports = self.further[each.name], each.speak, self.settings.further_ports
        if speak is None:
            return {each.name: await self._open(each.name, gateway, rules, ports.get(each.name, 0), _DUAL)}
        opened, reception = {}, self._reception(gateway)
        for name, scheme in ((each.name, each.scheme), (f"{each.name}_tls", f"{each.scheme}s")):
            tls = credentials.tls_context(self.settings.directory, [])
            listener = Listener(
                reception, rules, tls if name != each.name else None, host=self.settings.host,
                port=ports.get(name, 0), speak=functools.partial(speak, gateway, reception, tls),
            )  # fmt: skip
            opened[name] = f"{scheme}://{await self._listen(name, listener)}"
        return opened

    def _reception(self, gateway: Gateway) -> Reception:
        return Reception(
            gateway,
            self.faults,
            self.records,
            self.settings.clock,
            self.queues[gateway.name],
            needs_length=self.settings.needs_length,
        )

    async def _listen(self, name: str, listener: Listener) -> str:
        """Open a port, and return its host and number."""
        self._listeners[name] = listener
        await listener.open()
        await listener.follow_script()
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"{host}:{listener.port}"

    async def _flush_journal(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            self.records.flush()


def run_lab(settings: LabSettings, *, json: bool = False) -> None:
    """Run a lab until SIGINT or SIGTERM; print where it is as text, or as one JSON line."""
    asyncio.run(_run(settings, json=json))


async def _run(settings: LabSettings, *, json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    lab = Lab(settings)
    await lab.start()
    sys.stdout.write(_ready_line(lab) if json else _ready_text(lab))
    sys.stdout.flush()
    await stop.wait()
    await lab.stop()


def _ready_line(lab: Lab) -> str:
    ready = {"ready": True, **lab.urls.by_name(), "directory": str(lab.settings.directory)}
    return msgspec.json.encode(ready).decode() + "\n"


def _ready_text(lab: Lab) -> str:
    urls, settings = lab.urls, lab.settings
    names = (credentials.CA, credentials.APNS_KEY, credentials.SERVICE_ACCOUNT, credentials.VAPID_KEY)
    lines = ["The provider lab is ready.", ""]
    lines += [f"  {name:<14} {url}" for name, url in urls.by_name().items()]
    lines += ["", f"  APNs key {settings.key_id}, team {settings.team_id}, topics {', '.join(settings.topics)}"]
    lines += [f"  {settings.directory / name}" for name in names]
    return "\n".join([*lines, "", "Stop with Ctrl-C.", ""])
