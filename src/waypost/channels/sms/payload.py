"""The form that Twilio's Messages API takes, the same for every telephone but ``To``.

Source: Twilio, "Messages resource", create parameters (2010-04-01).
"""

from __future__ import annotations

from urllib.parse import urlencode

from msgspec import Struct

from waypost.channels.push.fitting import Fit, fitted
from waypost.channels.sms.segments import Segments, segments_of
from waypost.channels.sms.settings import CHANNEL
from waypost.domain.content import Content, Kind
from waypost.domain.errors import Fault
from waypost.domain.message import Message
from waypost.domain.outcome import Refused
from waypost.domain.time import Instant

LIMIT_CHARACTERS = 1_600
"""The most characters of a body."""
VALIDITY_S = (1, 36_000)
"""The range of ``ValidityPeriod``, seconds."""


class Rendering(Struct, frozen=True):
    """The form without ``To``, and how its text travels."""

    fields: tuple[tuple[str, str], ...]
    text: str
    segments: Segments

    def body(self, to: str, callback: str | None = None) -> bytes:
        """Encode the form for one telephone."""
        fields = [("To", to), *self.fields]
        if callback is not None:
            fields.append(("StatusCallback", callback))
        return urlencode(fields).encode()


def render(message: Message, now: Instant, sender: tuple[str, str], fit: Fit) -> Rendering | Refused:
    """Render what goes to each telephone; *sender* is the field that says whom it comes from."""
    text = text_of(message, message.content)
    if fit == "trim" and len(text) > LIMIT_CHARACTERS:
        content = fitted(message.content, lambda tried: len(text_of(message, tried)), LIMIT_CHARACTERS)
        text = text if content is None else text_of(message, content)
    if not text:
        return Refused("nothing_to_say", "a text message needs a title, a body or overrides.sms.body")
    if len(text) > LIMIT_CHARACTERS:
        return Refused("payload_too_large", f"{len(text)} characters, limit {LIMIT_CHARACTERS}")
    least, most = VALIDITY_S
    validity_s = min(max(message.remaining_ttl_s(now), least), most)
    return Rendering((sender, ("Body", text), ("ValidityPeriod", str(validity_s))), text, segments_of(text))


def text_of(message: Message, content: Content) -> str:
    """Write the text: what ``overrides.sms.body`` says, or title, body and link, a line each."""
    own = message.override.get("body")
    if isinstance(own, str):
        return own
    return "\n".join(each for each in (content.title, content.body, content.link) if each)


def message_faults(content: Content, kind: Kind) -> list[Fault]:
    """List what this channel could never send."""
    override = content.overrides.get(CHANNEL, {})
    found = [Fault(f"overrides.sms.{key}", "unknown; there is body") for key in override if key != "body"]
    own = override.get("body")
    if own is not None and (not isinstance(own, str) or not 0 < len(own) <= LIMIT_CHARACTERS):
        found.append(Fault("overrides.sms.body", f"must be a text of 1 to {LIMIT_CHARACTERS} characters"))
    return found
