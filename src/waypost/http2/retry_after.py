"""How long an answer asks to be left alone (RFC 9110, section 10.2.3)."""

from email.utils import parsedate_to_datetime

from .hpack import Field


def retry_after_ms(headers: tuple[Field, ...], now_ms: int) -> int | None:
    """Milliseconds to wait from *now_ms* (UNIX time), from seconds or a date; None without a readable hint."""
    for name, value in headers:
        if name == b"retry-after":
            return _wait_ms(value.decode("latin-1").strip(), now_ms)
    return None


def _wait_ms(text: str, now_ms: int) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text) * 1000
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0, int(moment * 1000) - now_ms)
