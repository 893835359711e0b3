"""A push service: RFC 8030 delivery, RFC 8292 sender identity, and real decryption of every message."""

import re
import secrets
from collections.abc import Callable

import msgspec

from waypost.lab import ece
from waypost.lab.exchange import GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.push_services import SERVICES, ServiceProfile, subscription_id
from waypost.lab.records import notification_id_in
from waypost.lab.subscriptions import Subscription, Subscriptions, Transport, private_key
from waypost.lab.vapid import VapidIdentity, parameters, public_key, read_vapid

STREAMS = 100
_MAX_BODY_BYTES = 4096
_DAY_S, _HOUR_S = 86400, 3600
_MAX_RECEIPTS = 10_000
_RECEIPT_PATH = "/receipt/"
_URGENCIES = ("very-low", "low", "normal", "high")
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,32}\Z")
_SUBJECT = re.compile(r"(?:mailto:[^:\s@]+@(?!localhost)[^\s@]+|https://\S+)\Z")


class WebPushRequest(msgspec.Struct):
    """A request on its way through the checks."""

    request: Request
    gateway: "WebPushGateway"
    now: float
    subscription: Subscription | None
    vapid: VapidIdentity | None = None
    opened: ece.Decrypted | None = None

    def header(self, name: str) -> str | None:
        """Return the value of a header, None when it was not sent."""
        return self.request.headers.get(name)

    @property
    def service(self) -> ServiceProfile:
        """The service whose subscription it is for."""
        return SERVICES[self.subscription.service if self.subscription else "rfc"]


class WebPushCheck(msgspec.Struct, frozen=True):
    """A row of checks: when *holds* is false the message is refused; `push_services` gives each service's own words."""

    holds: Callable[[WebPushRequest], bool]
    status: int
    reason: str
    strict: bool = False


def _vapid_holds(delivery: WebPushRequest) -> bool:
    header = delivery.header("authorization")
    if header is None:
        return True
    delivery.vapid = delivery.gateway.identify(header)
    return delivery.vapid is not None


def _vapid_key_is_point(delivery: WebPushRequest) -> bool:
    """Check that the key is a point; a header of another form altogether is not judged here."""
    key = parameters(delivery.header("authorization") or "").get("k")
    return key is None or public_key(key) is not None


def _audience_is_origin(delivery: WebPushRequest) -> bool:
    origin = f"{delivery.request.connection.scheme}://{delivery.header(':authority')}"
    return delivery.vapid is None or delivery.vapid.audience == origin


def _not_expired(delivery: WebPushRequest) -> bool:
    return delivery.vapid is None or delivery.now < delivery.vapid.expires_at


def _expires_within_a_day(delivery: WebPushRequest) -> bool:
    return delivery.vapid is None or delivery.vapid.expires_at <= delivery.now + _DAY_S + 60


def _subject_is_contact(delivery: WebPushRequest) -> bool:
    vapid = delivery.vapid
    if vapid is None or (not vapid.subject and not delivery.service.wants_subject):
        return True
    return bool(_SUBJECT.match(str(vapid.subject)))


def _not_refreshed_within_an_hour(delivery: WebPushRequest) -> bool:
    """Check Apple's rule "don't refresh more than once per hour", by what a connection shows."""
    before = delivery.request.connection.vapid
    if before is None or delivery.service is not SERVICES["apple"] or before[0] == delivery.header("authorization"):
        return True
    return delivery.now - before[1] >= _HOUR_S


def _sender_is_the_subscribed(delivery: WebPushRequest) -> bool:
    subscription, vapid = delivery.subscription, delivery.vapid
    if subscription is None or subscription.vapid_key is None:
        return True
    return vapid is not None and vapid.public_key == subscription.vapid_key


def _decrypts(delivery: WebPushRequest) -> bool:
    subscription, body = delivery.subscription, delivery.request.body
    if subscription is None or not body or subscription.browser:
        return True
    opened = ece.open_message(body, private_key(subscription), subscription.public_key, subscription.auth)
    if isinstance(opened, ece.Undecryptable):
        return False
    delivery.opened = opened
    return True


def _one_time_key_is_not_identity(delivery: WebPushRequest) -> bool:
    opened, vapid = delivery.opened, delivery.vapid
    return opened is None or vapid is None or opened.sender_key != vapid.public_key


def _ttl_suits_service(delivery: WebPushRequest) -> bool:
    """Check the TTL; Windows takes 0 from a sender that also says not to keep the message."""
    is_windows = delivery.subscription is not None and delivery.subscription.service == "windows"
    if is_windows and delivery.header("x-wns-cache-policy") == "no-cache":
        return True
    return delivery.service.takes_zero_ttl or kept_s(delivery.request) > 0


def kept_s(request: Request) -> int:
    """Read the TTL asked for; what no one can count is 2^31 (RFC 8030 section 5.2)."""
    text = request.headers.get("ttl") or "0"
    return min(int(text[:12]), 2**31) if len(text) <= 12 else 2**31


def _alive(delivery: WebPushRequest) -> bool:
    return delivery.subscription is None or delivery.subscription.id not in delivery.gateway.deaths


CHECKS = (
    WebPushCheck(lambda d: d.request.method == "POST", 405, "method_not_allowed"),
    WebPushCheck(lambda d: d.subscription is not None, 404, "unknown_subscription"),
    WebPushCheck(_alive, 410, "gone"),
    WebPushCheck(lambda d: d.header("authorization") is not None, 401, "vapid_missing", strict=True),
    WebPushCheck(lambda d: not (d.header("authorization") or "").startswith("key="), 403, "vapid_legacy"),
    WebPushCheck(_vapid_key_is_point, 403, "vapid_key_invalid"),
    WebPushCheck(_vapid_holds, 403, "vapid_invalid"),
    WebPushCheck(_audience_is_origin, 403, "vapid_audience"),
    WebPushCheck(_not_expired, 403, "vapid_expired"),
    WebPushCheck(_expires_within_a_day, 403, "vapid_expires_late"),
    WebPushCheck(_subject_is_contact, 403, "vapid_subject", strict=True),
    WebPushCheck(_sender_is_the_subscribed, 403, "vapid_key_mismatch"),
    WebPushCheck(lambda d: (d.header("ttl") or "").isdecimal(), 400, "ttl_missing"),
    WebPushCheck(_ttl_suits_service, 400, "ttl_zero"),
    WebPushCheck(lambda d: "urgency" not in d.request.repeated, 400, "urgency_invalid"),
    WebPushCheck(lambda d: d.header("urgency") is None or d.header("urgency") in _URGENCIES, 400, "urgency_invalid"),
    WebPushCheck(
        lambda d: d.header("topic") is None or bool(_TOPIC.match(d.header("topic") or "")), 400, "topic_invalid"
    ),
    WebPushCheck(lambda d: len(d.request.body) <= _MAX_BODY_BYTES, 413, "too_large"),
    WebPushCheck(lambda d: not d.request.body or d.header("content-encoding") == "aes128gcm", 400, "encoding_invalid"),
    WebPushCheck(_decrypts, 400, "undecryptable", strict=True),
    WebPushCheck(_one_time_key_is_not_identity, 400, "key_reused"),
    WebPushCheck(_not_refreshed_within_an_hour, 403, "vapid_refreshed", strict=True),
)
"""A real service cannot decrypt; the browser drops what it cannot read. Here that is refused, to be seen."""


class WebPushGateway:
    """The push services of all browsers, told apart by the form of the endpoint."""

    name = "webpush"

    def __init__(
        self, subscriptions: Subscriptions, deaths: dict[str, int], *, strict: bool, max_ttl_s: int,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.origins: dict[Transport, str] = {}
        self.deaths, self.subscriptions = deaths, subscriptions
        self.hand_over: Callable[[Subscription, Request], None] = lambda _subscription, _request: None
        """Told of what was taken for a real browser."""
        self._checks = tuple(check for check in CHECKS if strict or not check.strict)
        self._max_ttl_s, self._clock = max_ttl_s, clock
        self._verified: dict[str, VapidIdentity] = {}
        self._receipts: dict[str, str] = {}

    def subscribe(self, *, service: str, vapid_key: bytes | None) -> Subscription:
        """Make one subscription."""
        return self.subscriptions.make(1, service=service, vapid_key=vapid_key)[0]

    def endpoint(self, subscription: Subscription) -> str:
        """Return the URL a sender is given."""
        return self.origins[subscription.transport] + SERVICES[subscription.service].path + subscription.id

    def identify(self, header: str) -> VapidIdentity | None:
        """Verify `vapid t=..., k=...` once; later requests with the same header are looked up."""
        if known := self._verified.get(header):
            return known
        vapid = read_vapid(header)
        if vapid is not None:
            if len(self._verified) > 1000:
                self._verified = {}
            self._verified[header] = vapid
        return vapid

    def token_of(self, request: Request) -> str:
        """Return the subscription's id."""
        return subscription_id(request.path)

    def judge(self, request: Request) -> Verdict:
        """Judge the message by the table of checks."""
        if request.path.startswith(_RECEIPT_PATH):
            return Verdict(answer=self._receipt(request), keep=False)
        token = subscription_id(request.path)
        delivery = WebPushRequest(request, self, self._clock(), self.subscriptions.get(token))
        for check in self._checks:
            if not check.holds(delivery):
                answer = delivery.service.refuse(Refusal(check.status, check.reason))
                return self._verdict(delivery, token, answer, reason=check.reason)
        said, shown = delivery.header("authorization") or "", request.connection.vapid
        if delivery.service is SERVICES["apple"] and (shown is None or shown[0] != said):
            request.connection.vapid = said, delivery.now
        if delivery.subscription is not None and delivery.subscription.browser:
            self.hand_over(delivery.subscription, request)
        return self._verdict(delivery, token, self._taken(delivery, token), accepted=True)

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse as scripted, in the words of the subscription's service."""
        if gone_at_ms is not None:
            refusal = Refusal(refusal.status, "gone" if refusal.status == 410 else "unknown_subscription")
        return WebPushRequest(request, self, 0, self.subscriptions.get(subscription_id(request.path))).service.refuse(
            refusal
        )

    def _taken(self, delivery: WebPushRequest, token: str) -> GatewayAnswer:
        """Answer 201; or 202 with the address of a receipt, if the sender asks for one and the service has them."""
        subscription = delivery.subscription
        origin = self.origins[subscription.transport if subscription else "h2"]
        headers = delivery.service.taken(origin, min(kept_s(delivery.request), self._max_ttl_s))
        if delivery.header("prefer") != "respond-async" or not delivery.service.receipts:
            return GatewayAnswer(201, headers)
        if len(self._receipts) >= _MAX_RECEIPTS:
            self._receipts.clear()
        receipt = secrets.token_urlsafe(18)
        self._receipts[receipt] = token
        link = f'<{origin}{_RECEIPT_PATH}{receipt}>; rel="urn:ietf:params:push:receipt"'
        return GatewayAnswer(202, (*headers, ("link", link)))

    def _receipt(self, request: Request) -> GatewayAnswer:
        """Answer what became of a message: 204 delivered, as all are that a living browser is sent, or 410."""
        token = self._receipts.get(request.path.removeprefix(_RECEIPT_PATH))
        if token is None or request.method != "GET":
            return SERVICES["rfc"].refuse(Refusal(404, "unknown_receipt"))
        return GatewayAnswer(410 if token in self.deaths else 204)

    def _verdict(
        self, delivery: WebPushRequest, token: str, answer: GatewayAnswer, *, accepted: bool = False, reason: str = ""
    ) -> Verdict:
        plaintext = delivery.opened.plaintext if delivery.opened else None
        return Verdict(
            answer=answer, accepted=accepted, reason=reason, token=token, plaintext=plaintext,
            notification_id=notification_id_in(plaintext), push_type=delivery.header("urgency") or "normal",
        )  # fmt: skip
