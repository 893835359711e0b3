"""Pages out of templates: the words and numbers as people read them, everything escaped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

_FOLDER: Final = Path(__file__).parent
STATIC: Final = _FOLDER / "static"
_GOOD: Final = frozenset(
    {"sent", "delivered", "opened", "read", "ok", "closed", "published", "active", "finished", "done"}
)
_BAD: Final = frozenset({"failed", "dead", "stuck_processing", "orphaned_pending", "orphaned_scheduled", "open"})
_WARNING: Final = frozenset({"partial", "expired", "unknown", "no_targets", "paused", "half_open"})
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_THOUSAND: Final = 1_000


def render(template: str, values: Mapping[str, Any]) -> str:
    """Render one of the templates."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    """Make the engine once; a name that a page forgot is an error, and nothing is taken for HTML by itself."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount,
        "moment": moment,
        "percent": percent,
        "seconds": seconds,
        "short": short,
        "words": words,
        "status": status,
    }
    environment.globals |= {"static": static_url}
    return environment


@cache
def static_url(name: str) -> str:
    """Return the address of a file; it changes with what is in it, so that browsers may keep it."""
    return f"/dashboard/-/static/{name}?v={sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


def amount(number: float | None) -> str:
    """Write a number with spaces between thousands: ``12 345``; a fraction with one digit."""
    if number is None:
        return "–"
    whole = isinstance(number, int) or float(number).is_integer() or abs(number) >= _THOUSAND
    return (f"{round(number):,}" if whole else f"{number:.1f}").replace(",", "\u202f")


def percent(part: float | None) -> str:
    """Write a part of one as a percentage."""
    return "–" if part is None else f"{100 * part:.1f}\u202f%"


def seconds(duration: float | None) -> str:
    """Write a duration by its largest unit: ``3 h``, ``12 min``, ``1.4 s``, ``80 ms``."""
    if duration is None:
        return "–"
    if duration < 1:
        return f"{1_000 * duration:.0f}\u202fms"
    for size, unit in _UNITS:
        if duration >= 2 * size:
            return f"{duration / size:.0f}\u202f{unit}"
    return f"{duration:.1f}\u202fs" if duration < 10 else f"{duration:.0f}\u202fs"


def moment(text: str | int | None) -> Markup:
    """Write a time of the API, or one in milliseconds, as UTC to the second, whole in its title."""
    if text is None:
        return Markup('<span class="none">–</span>')
    at = datetime.fromtimestamp(text / 1_000, UTC) if isinstance(text, int) else datetime.fromisoformat(text)
    shown = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{} <span class="zone">UTC</span></time>').format(
        shown.isoformat(), f"{shown:%Y-%m-%d %H:%M:%S.%f}"[:-3], f"{shown:%Y-%m-%d %H:%M:%S}"
    )


def short(text: str | None, most: int = 80) -> str:
    """Cut a long text."""
    if text is None:
        return "–"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def words(name: str) -> str:
    """Write a name of the API as words: ``stuck_processing`` is ``stuck processing``."""
    return name.replace("_", " ")


def status(name: str | None) -> Markup:
    """Write a status as a badge; the word says it, the colour only helps."""
    if name is None:
        return Markup('<span class="none">–</span>')
    tone = "good" if name in _GOOD else "bad" if name in _BAD else "warning" if name in _WARNING else "plain"
    return Markup('<span class="badge {}">{}</span>').format(tone, escape(words(name)))
