"""Every answer of Twilio and what it means for a delivery.

Sources: Twilio, "Error and warning dictionary" (codes), "Messages resource", "Best practices for 429 Too Many
Requests" (20429 was not processed). docs/providers/twilio.md has the same table for operators.
"""

from __future__ import annotations

from typing import Final, assert_never

import msgspec
from msgspec import Struct

from waypost.channels.push.answers import Meaning, is_success, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.reading import read_json
from waypost.channels.push.retry_after import hint_ms
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

CODES: Final[dict[int, tuple[Meaning, str]]] = {
    20003: (Meaning.DENIED, "the account SID and its secret do not belong together"),
    20005: (Meaning.DENIED, "the account is not active"),
    20404: (Meaning.DENIED, "there is no such account"),
    20429: (Meaning.THROTTLED_WHOLE, "too many requests at once"),
    21211: (Meaning.DEAD_TOKEN, "no valid telephone number"),
    21212: (Meaning.DENIED, "the sender's number is no valid one"),
    21214: (Meaning.DEAD_TOKEN, "the number cannot be reached"),
    21217: (Meaning.DEAD_TOKEN, "no valid telephone number"),
    21265: (Meaning.REFUSED, "a short code cannot be a recipient"),
    21408: (Meaning.REFUSED_HERE, "the account may not send to this region"),
    21602: (Meaning.REFUSED, "the text is empty"),
    21603: (Meaning.DENIED, "a sender's number is missing"),
    21606: (Meaning.DENIED, "the sender's number is not the account's, or cannot send text messages"),
    21608: (Meaning.REFUSED_HERE, "a trial account sends to verified numbers alone"),
    21609: (Meaning.DENIED, "rest.public_url is no address that Twilio reports to"),
    21610: (Meaning.DEAD_TOKEN, "the recipient has opted out"),
    21611: (Meaning.THROTTLED_WHOLE, "the queue of the sender's number is full"),
    21612: (Meaning.REFUSED_HERE, "there is no way from this sender to this number"),
    21614: (Meaning.DEAD_TOKEN, "not the number of a mobile telephone"),
    21617: (Meaning.REFUSED, "the text is too long"),
    21635: (Meaning.DEAD_TOKEN, "the number of a landline"),
    21660: (Meaning.DENIED, "the sender's number is not the account's"),
    21703: (Meaning.DENIED, "the messaging service has no number"),
    21705: (Meaning.DENIED, "no such messaging service"),
    30001: (Meaning.THROTTLED_WHOLE, "the queue of the account is full"),
    30002: (Meaning.DENIED, "the account is suspended"),
    30003: (Meaning.REFUSED, "the telephone is off or out of reach"),
    30004: (Meaning.DEAD_TOKEN, "the recipient does not take messages"),
    30005: (Meaning.DEAD_TOKEN, "the number is not in use"),
    30006: (Meaning.DEAD_TOKEN, "a landline, or a network that cannot be reached"),
    30007: (Meaning.REFUSED, "filtered as unwanted by the network"),
    30008: (Meaning.REFUSED, "not delivered, for an unknown reason"),
    30034: (Meaning.DENIED, "the sender's number is not registered for messages of applications"),
    30036: (Meaning.REFUSED, "it waited at Twilio for longer than its time to live"),
}
"""The codes of Twilio; those from 30000 on come in its reports, for the most part."""
DEAD_CODES: Final = frozenset(code for code, (meaning, _) in CODES.items() if meaning is Meaning.DEAD_TOKEN)

STATUSES: Final[dict[int, tuple[Meaning, str]]] = {
    400: (Meaning.REFUSED, "the request is not understood"),
    401: (Meaning.DENIED, "the account SID and its secret do not belong together"),
    403: (Meaning.DENIED, "the account may not send"),
    404: (Meaning.DENIED, "there is no such account"),
    429: (Meaning.THROTTLED_WHOLE, "too many requests at once"),
    500: (Meaning.UNSURE, "Twilio failed"),
    502: (Meaning.UNSURE, "Twilio failed"),
    503: (Meaning.UNSURE, "Twilio is not available"),
    504: (Meaning.UNSURE, "Twilio failed"),
}
"""The meaning of a status where no code is known."""


class _Said(Struct):
    """The fields that matter of an answer's JSON."""

    sid: str = ""
    code: int = 0


_answers = msgspec.json.Decoder(_Said)


def outcome_of(result: Result, now: Instant) -> Outcome:
    """Turn the result of one request into an outcome; the message's SID is the provider's id."""
    match result:
        case Answer():
            said = read_json(_answers, result.body) or _Said()
            if is_success(result):
                return Taken(said.sid[:64])
            unknown = (Meaning.UNSURE, f"an answer that Twilio does not document, status {result.status}")
            meaning, why = CODES.get(said.code) or STATUSES.get(result.status, unknown)
            code = str(said.code) if said.code in CODES else f"http_{result.status}"
            return outcome_of_meaning(meaning, code, why, hint_ms(result, meaning, now))
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)
