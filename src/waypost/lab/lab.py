"""The lab: builds the gateways, opens their ports, and stands until it is told to stop."""

import asyncio
import signal
import sys

import msgspec

from waypost.lab import apns, credentials, fcm, webpush
from waypost.lab.admin import Admin
from waypost.lab.apns import ApnsGateway
from waypost.lab.exchange import Gateway
from waypost.lab.faults import Faults, Rule, read_rules
from waypost.lab.fcm import FcmGateway
from waypost.lab.framing import WireRules
from waypost.lab.listeners import Listener
from waypost.lab.oauth import TOKEN_PATH, OAuthGateway, ServiceAccount
from waypost.lab.reception import Reception
from waypost.lab.records import Records
from waypost.lab.settings import LabSettings, LabUrls
from waypost.lab.subscriptions import Subscriptions
from waypost.lab.tokens import Tokens
from waypost.lab.webpush import WebPushGateway

_DUAL, _HTTP2 = ["h2", "http/1.1"], ["h2"]


class Lab:
    """All gateways of one lab. `start`, use `urls`, `stop`; one object runs once."""

    urls: LabUrls
    records: Records
    oauth: OAuthGateway
    apns: ApnsGateway
    fcm: FcmGateway
    webpush: WebPushGateway

    def __init__(self, settings: LabSettings) -> None:
        self.settings = settings
        self.faults = Faults()
        self.tokens = Tokens(accept_any=settings.accept_any_token)
        self._listeners: dict[str, Listener] = {}
        self._flusher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Write missing credentials, then open every port. Raises OSError for a port in use."""
        settings = self.settings
        settings.directory.mkdir(parents=True, exist_ok=True)
        journal = settings.directory / "received.ndjson" if settings.journal else None
        self.records = Records(max_records=settings.max_records, max_bodies=settings.max_bodies, journal=journal)
        if settings.faults is not None:
            self.faults.replace(read_rules(settings.faults))
        self._make_gateways(credentials.write_missing(settings.directory, settings.project_id))
        oauth = await self._open(self.oauth, WireRules(max_streams=100), settings.oauth_port, _DUAL)
        self.oauth.url = oauth + TOKEN_PATH
        credentials.write_service_account(settings.directory, settings.project_id, self.oauth.url)
        apns_rules = WireRules(max_streams=apns.STREAMS_BEFORE_TOKEN)
        apns_url = await self._open(self.apns, apns_rules, settings.apns_port, _HTTP2)
        fcm_rules = WireRules(
            max_streams=fcm.STREAMS, needs_alpn=True, max_unasked_pings=3,
            idle_s=settings.fcm_idle_s, max_age_s=settings.fcm_max_age_s,
        )  # fmt: skip
        fcm_url = await self._open(self.fcm, fcm_rules, settings.fcm_port, _HTTP2)
        webpush_rules = WireRules(max_streams=webpush.STREAMS)
        self.webpush.origin = await self._open(self.webpush, webpush_rules, settings.webpush_port, _DUAL)
        self._admin = Admin(self)
        admin_url = await self._admin.open(settings.host, settings.admin_port)
        self.urls = LabUrls(apns_url, fcm_url, self.oauth.url, self.webpush.origin, admin_url)
        self._flusher = asyncio.create_task(self._flush_journal())

    def _make_gateways(self, made: credentials.Credentials) -> None:
        settings = self.settings
        account = ServiceAccount(made.service_account_email, made.service_account_key)
        self.oauth = OAuthGateway(account, lifetime_s=settings.access_token_lifetime_s, clock=settings.clock)
        key = apns.SigningKey(settings.key_id, settings.team_id, made.apns_key, settings.topics)
        self.apns = ApnsGateway(
            [key], self.tokens, environment=settings.environment, strict=settings.strict, clock=settings.clock
        )
        self.fcm = FcmGateway(settings.project_id, self.oauth, self.tokens, strict=settings.strict)
        subscriptions = Subscriptions(settings.directory / "subscriptions.ndjson")
        self.webpush = WebPushGateway(subscriptions, self.tokens.deaths, strict=settings.strict, clock=settings.clock)

    async def stop(self) -> None:
        """Close every port and connection and finish the journal."""
        if self._flusher is not None:
            self._flusher.cancel()
        await self._admin.close()
        for listener in self._listeners.values():
            await listener.stop()
        self.records.close()

    async def script(self, rules: list[Rule]) -> None:
        """Put fault rules in force, closing and opening ports as they say."""
        self.faults.replace(rules)
        for listener in self._listeners.values():
            await listener.follow_script()

    async def _open(self, gateway: Gateway, rules: WireRules, port: int, alpn: list[str]) -> str:
        reception = Reception(gateway, self.faults, self.records, self.settings.clock)
        context = credentials.tls_context(self.settings.directory, alpn)
        listener = Listener(reception, rules, context, host=self.settings.host, port=port, http1="http/1.1" in alpn)
        self._listeners[gateway.name] = listener
        await listener.open()
        await listener.follow_script()
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"https://{host}:{listener.port}"

    async def _flush_journal(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            self.records.flush()


def run_lab(settings: LabSettings, *, json: bool = False) -> None:
    """Run a lab until SIGINT or SIGTERM; say where it is as text, or as one JSON line."""
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
    ready = {"ready": True, **msgspec.structs.asdict(lab.urls), "directory": str(lab.settings.directory)}
    return msgspec.json.encode(ready).decode() + "\n"


def _ready_text(lab: Lab) -> str:
    urls, settings = lab.urls, lab.settings
    names = (credentials.CA, credentials.APNS_KEY, credentials.SERVICE_ACCOUNT, credentials.VAPID_KEY)
    lines = ["The provider lab is ready.", ""]
    lines += [f"  {name:<8} {url}" for name, url in msgspec.structs.asdict(urls).items()]
    lines += ["", f"  APNs key {settings.key_id}, team {settings.team_id}, topics {', '.join(settings.topics)}"]
    lines += [f"  {settings.directory / name}" for name in names]
    return "\n".join([*lines, "", "Stop with Ctrl-C.", ""])
