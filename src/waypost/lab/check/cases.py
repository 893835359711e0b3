"""The cases that a sender is put through: each is a fault at the gateways and what must come of it."""

from typing import Literal

import msgspec

from waypost.lab.counterparts import counterparts
from waypost.lab.faults import (
    AnswerFault,
    BlackHole,
    Do,
    FaultRule,
    Goaway,
    GoneFault,
    Match,
    Rst,
    SettingsChange,
)

HTTP = ("apns", "fcm", "webpush", *(each.name for each in counterparts() if each.speak is None))
"""The gateways of cases that are made of HTTP's failures."""
GATEWAYS = (*HTTP, *(each.name for each in counterparts() if each.speak is not None))
ANSWERING = (*HTTP, "email")
"""The gateways of cases that are made of answers, in whose words we know how to put them."""
_LONG_AGO_MS = 1_000_000_000_000
RETRY_AFTER_S = 2


class Want(msgspec.Struct, frozen=True):
    """The requests to be seen for the first target; all others are always to be reached, each once a round."""

    accepted: int | None = 1
    """The copies that it takes in all; None where that does not matter."""
    max_requests: int | None = None
    """The number of requests above which there are too many."""
    pause_s: float | None = None
    """The least time between the first request and the next, seconds."""
    one_message_id: bool = False
    """Whether all that is sent to it has the same Message-ID, so that a reader sees one message."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A case of failure. *first* happens to requests for the first target, *any* to all at the gateway."""

    name: str
    says: str
    first: dict[str, Do] = {}
    any: dict[str, Do] = {}
    """Faults at the gateway; without one the targets themselves are the trial."""
    elsewhere: tuple[FaultRule, ...] = ()
    """Faults at a further gateway."""
    repeats: bool = False
    """Whether the fault meets every request, not the first alone."""
    let_pass: int = 0
    """Requests that pass before the fault."""
    targets: int = 1
    rounds: int = 1
    special: Literal["", "bounce", "disconnect", "other-environment", "revoke-access", "trap"] = ""
    """The special preparation of the case."""
    gateways: tuple[str, ...] = GATEWAYS
    want: Want = Want()

    def rules(self, tokens: dict[str, str]) -> list[FaultRule]:
        """Build the fault script, given the first target of each gateway."""
        times = None if self.repeats else 1
        mine = [
            FaultRule(do=do, where=gateway, match=Match(token=tokens[gateway], times=times, after=self.let_pass))
            for gateway, do in self.first.items()
            if gateway in tokens
        ]
        theirs = [
            FaultRule(do=do, where=gateway, match=Match(times=times, after=self.let_pass))
            for gateway, do in self.any.items()
            if gateway in tokens
        ]
        return [*mine, *theirs, *self.elsewhere]


def _everywhere(do: Do) -> dict[str, Do]:
    return dict.fromkeys(GATEWAYS, do)


def _answers(
    status: int, apns: str, fcm: str, *, retry_after: int | None = None, date_s: int | None = None
) -> dict[str, Do]:
    """Phrase the same failure in the words of each gateway that speaks HTTP."""
    reasons = dict.fromkeys(HTTP, apns) | {"fcm": fcm}
    return {
        name: Do(answer=AnswerFault(status, reason, retry_after=retry_after, retry_after_date_s=date_s))
        for name, reason in reasons.items()
    }


def _by_mail(status: int, text: str) -> dict[str, Do]:
    """Phrase a failure as a mail server does."""
    return {"email": Do(answer=AnswerFault(status, text))}


CASES = (
    Case(name="accepts", says="every message arrives, once, and nothing about it is refused", targets=3),
    Case(
        name="dead-token", says="410 (FCM 404 UNREGISTERED) is final: no second try, and the others are reached",
        first=_everywhere(Do(gone=GoneFault())), repeats=True, targets=2, want=Want(accepted=0, max_requests=1),
    ),
    Case(
        name="odd-field", says="a dead token is one whatever the other fields of the answer are", repeats=True,
        gateways=("apns", "fcm"), want=Want(accepted=0, max_requests=1),
        first={
            "apns": Do(answer=AnswerFault(410, "Unregistered", fields={"timestamp": 1.5})),
            "fcm": Do(answer=AnswerFault(404, "UNREGISTERED", fields={"error": {"message": None}})),
        },
    ),
    Case(
        name="no-content", says="204 is a success, and the message is not sent again", gateways=("webpush",),
        first={"webpush": Do(answer=AnswerFault(204, accept=True))}, repeats=True, want=Want(max_requests=1),
    ),
    Case(
        name="dead-token-forgotten", says="a token that was said to be dead is not used for the next message",
        first=_everywhere(Do(gone=GoneFault())), repeats=True, targets=2, rounds=2, want=Want(accepted=0,
        max_requests=1),
    ),
    Case(
        name="old-death", says="a death older than the registration does not cost the token", rounds=2,
        gateways=("apns",), first={"apns": Do(gone=GoneFault(at_ms=_LONG_AGO_MS))},
    ),
    Case(
        name="wrong-environment", says="BadDeviceToken is not repeated at the same host", gateways=("apns",),
        special="other-environment", want=Want(accepted=0, max_requests=1),
    ),
    Case(
        name="refused-message", says="a message that was called wrong is not sent again", repeats=True,
        first=_everywhere(Do(answer=AnswerFault(413, "too_large"))) | {
            "apns": Do(answer=AnswerFault(413, "PayloadTooLarge")),
            "fcm": Do(answer=AnswerFault(400, "INVALID_ARGUMENT")),
            "twilio": Do(answer=AnswerFault(400, "21617")),
        } | _by_mail(554, "5.6.0 message refused"),
        gateways=ANSWERING, want=Want(accepted=0, max_requests=1),
    ),
    Case(
        name="throttled", says=f"429 with Retry-After: {RETRY_AFTER_S} is waited for, then the message arrives",
        gateways=HTTP, first=_answers(429, "TooManyRequests", "QUOTA_EXCEEDED", retry_after=RETRY_AFTER_S),
        want=Want(pause_s=RETRY_AFTER_S),
    ),
    Case(
        name="throttled-by-date", says="the same with Retry-After as an HTTP date (which has whole seconds)",
        gateways=HTTP, first=_answers(429, "TooManyRequests", "QUOTA_EXCEEDED", date_s=RETRY_AFTER_S + 1),
        want=Want(pause_s=RETRY_AFTER_S),
    ),
    Case(
        name="unavailable", says="after 503 (of a mail server 421) the message arrives", gateways=ANSWERING,
        first=_answers(503, "ServiceUnavailable", "UNAVAILABLE") | _by_mail(421, "4.3.2 closing, try again later"),
    ),
    Case(
        name="server-error", says="after 500 (of a mail server 451) the message arrives", gateways=ANSWERING,
        first=_answers(500, "InternalServerError", "INTERNAL") | _by_mail(451, "4.3.0 local error"),
    ),
    Case(
        name="try-later", says="a mail server that wants to be asked again later (450, greylisting) is asked again",
        gateways=("email",), first=_by_mail(450, "4.2.0 greylisted, try again later"),
    ),
    Case(
        name="answer-lost", says="a message that was taken before the connection broke is repeated as the same one",
        gateways=("email",), first={"email": Do(accept_then_drop=True)},
        want=Want(accepted=2, max_requests=2, one_message_id=True),
    ),
    Case(
        name="bounce", says="a mailbox that is not there, as a bounce says (LAB_BOUNCE_FILE), is sent to no more",
        gateways=("email",), special="bounce", rounds=2, targets=2, want=Want(accepted=1, max_requests=1),
    ),
    Case(
        name="html-502", says="after 502 in HTML the message arrives", gateways=HTTP,
        first=_everywhere(Do(answer=AnswerFault(502, body="<html><title>502</title>Bad Gateway</html>"))),
    ),
    Case(
        name="expired-provider-token", says="after ExpiredProviderToken a new one is made and the message arrives",
        gateways=("apns",), first={"apns": Do(answer=AnswerFault(403, "ExpiredProviderToken"))},
    ),
    Case(
        name="expired-access-token", says="after 401 a new access token is fetched and the message arrives",
        gateways=("fcm",), special="revoke-access", rounds=2, want=Want(accepted=2),
    ),
    Case(
        name="token-endpoint-down", says="while no access token is to be had the message waits, then arrives",
        gateways=("fcm",), special="revoke-access",
        elsewhere=(FaultRule(do=Do(answer=AnswerFault(503, "internal_failure")), where="oauth", match=Match(times=1)),),
    ),
    Case(
        name="refused-stream", says="REFUSED_STREAM was not processed: the message is sent again", gateways=HTTP,
        first=_everywhere(Do(rst=Rst())),
    ),
    Case(
        name="dropped-connection", says="after a connection that broke without an answer the message arrives",
        first=_everywhere(Do(drop=True)),
    ),
    Case(
        name="goaway", says="what GOAWAY leaves unprocessed is sent again on another connection", gateways=HTTP,
        first=_everywhere(Do(goaway=Goaway(last_stream="none", reason="Shutdown"))),
    ),
    Case(
        name="goaway-while-busy", says="of several in flight each arrives once, whichever GOAWAY still covers",
        gateways=HTTP,
        any=_everywhere(Do(goaway=Goaway(last_stream="half", hold_ms=200))), let_pass=1, targets=6,
    ),
    Case(
        name="settings-lowered", says="a stream limit that sinks to 1 is heeded at once", let_pass=1, targets=8,
        gateways=HTTP,
        any=_everywhere(Do(settings=SettingsChange(max_concurrent_streams=1))),
    ),
    Case(
        name="handshake-fails", says="after a TLS handshake that failed the message arrives",
        any=_everywhere(Do(tls_fail=True)), special="disconnect",
    ),
    Case(
        name="redirect", says="a push service's redirect is not followed", gateways=("webpush",), special="trap",
        repeats=True, want=Want(accepted=None),
    ),
    Case(
        name="silent-request", says="a request without an answer has a deadline, and the message arrives",
        first=_everywhere(Do(black_hole=BlackHole())),
    ),
    Case(
        name="silent-streams",
        says="where a connection answers PING but no request any more, the message arrives over another",
        gateways=HTTP,
        first=_everywhere(Do(black_hole=BlackHole(scope="streams"))),
    ),
    Case(
        name="silent-connection", says="a connection that went silent is left, and the message arrives",
        first=_everywhere(Do(black_hole=BlackHole(scope="connection"))),
    ),
)  # fmt: skip
"""In the order they are run: silence last, since a sender may do right to stop sending for a while."""
