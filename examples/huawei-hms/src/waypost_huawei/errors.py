"""Every answer of Huawei and what it means for a delivery.

Source: Huawei Push Kit, "Sending messages" (REST): the status is 200 in most cases, and the field ``code`` says what
came of the request; 503 is flow control. What is not in the tables may have been taken, and is tried again.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from waypost.channels.push.answers import Meaning, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.reading import name_of, read_json
from waypost.channels.push.retry_after import hint_ms
from waypost.domain.outcome import Gone, Outcome, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Result

SUCCESS: Final = "80000000"
SOME_REFUSED: Final = "80100000"
ASKS_FOR_A_TOKEN: Final = frozenset({"80200001", "80200003"})

CODES: Final[dict[str, tuple[Meaning, str]]] = {
    "80100003": (Meaning.REFUSED, "the message is not built as Huawei wants it"),
    "80200001": (Meaning.DENIED, "Huawei does not take the access token"),
    "80200003": (Meaning.DENIED, "the access token has expired"),
    "80300002": (Meaning.DENIED, "the app may not send messages"),
    "80300007": (Meaning.DEAD_TOKEN, "the token is invalid"),
    "80300010": (Meaning.REFUSED, "too many tokens"),
}
STATUSES: Final[dict[int, tuple[Meaning, str]]] = {
    400: (Meaning.REFUSED, "Huawei does not understand the request"),
    401: (Meaning.DENIED, "Huawei does not take the access token"),
    404: (Meaning.DENIED, "there is no such app, or no such address"),
    413: (Meaning.REFUSED, "the message is too large"),
    429: (Meaning.THROTTLED_WHOLE, "too many requests"),
    503: (Meaning.THROTTLED_WHOLE, "too many requests (flow control)"),
}
"""The meaning of a status where no code is known; the code is ``http_<status>``."""


class _Said(Struct):
    code: str = ""
    msg: str = ""
    requestId: str = ""  # noqa: N815 - as Huawei writes it


class _Partly(Struct):
    illegal_tokens: list[str] = []


_answers, _parts = msgspec.json.Decoder(_Said), msgspec.json.Decoder(_Partly)


def asks_for_a_token(result: Result) -> bool:
    """Tell whether the access token was refused, so that another one may help."""
    return isinstance(result, Answer) and (_said(result).code in ASKS_FOR_A_TOKEN or result.status == 401)


def outcome_of(result: Result, token: str, now: Instant) -> Outcome:
    """Turn the result of the request for one *token* into an outcome."""
    if not isinstance(result, Answer):
        return outcome_without_answer(result)
    said = _said(result)
    if said.code == SUCCESS:
        return Taken(name_of(said.requestId))
    if said.code == SOME_REFUSED:
        partly = read_json(_parts, said.msg.encode()) or _Partly()
        return Gone(said.code) if token in partly.illegal_tokens else Taken(name_of(said.requestId))
    unknown = (Meaning.UNSURE, f"an answer that Huawei does not document, status {result.status}")
    meaning, why = CODES.get(said.code) or STATUSES.get(result.status, unknown)
    code = said.code if said.code in CODES else f"http_{result.status}"
    return outcome_of_meaning(meaning, code, why, hint_ms(result, meaning, now))


def _said(answer: Answer) -> _Said:
    return read_json(_answers, answer.body) or _Said()
