"""The page on which a user reads and changes preferences: plain HTML, without script. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import parse_qsl

from msgspec import Struct

from waypost.config import AppSettings
from waypost.domain.preference_link import LinkedUser
from waypost.domain.preferences import PreferenceChange, TypeChange
from waypost.domain.quiet_hours import Hours
from waypost.domain.submission import NotificationType
from waypost.features.preferences.views import PreferencesView, TypePreferenceView, title_of
from waypost.features.preferences.wording import WORDS, Words

_ONE_CLICK: Final = (b"List-Unsubscribe", b"One-Click")
"""The field and value by which a mail program unsubscribes, in either form of a form (RFC 8058, section 3.2)."""
UNSUBSCRIBE: Final = "unsubscribe"
_FIELDS_LIMIT: Final = 5_000
_NOTHING: Final = "nothing"


class Shown(Struct, frozen=True):
    """The preferences as they are shown to somebody."""

    view: PreferencesView
    app: AppSettings
    link: LinkedUser
    language: str
    notice: str | None = None
    """What was done."""

    @property
    def words(self) -> Words:
        """The words of the language."""
        return WORDS[self.language]

    def title(self, name: str) -> str:
        """Return what a type is called."""
        return title_of(self.app.types[NotificationType(name)].titles, [self.language], name)


def render(shown: Shown) -> str:
    """Write the page."""
    words = shown.words
    notice = "" if shown.notice is None else f'<p role="status"><strong>{escape(shown.notice)}</strong></p>'
    types = "".join(_type(shown, each) for each in shown.view.types)
    hours = shown.view.quiet_hours
    since, until = ("", "") if hours is None else (hours.start, hours.end)
    quiet = (
        f"<fieldset><legend>{escape(words.quiet_hours)}</legend>"
        f'<label>{escape(words.since)} <input type="time" name="since" value="{since}"></label>'
        f'<label>{escape(words.until)} <input type="time" name="until" value="{until}"></label></fieldset>'
    )
    nothing = _box(_NOTHING, words.nothing, is_on=not shown.view.enabled)
    return _PAGE.format(
        language=shown.language,
        title=escape(words.title),
        intro=escape(words.intro),
        notice=notice,
        unsubscribe=_unsubscribe(shown) if shown.notice is None else "",
        fields=f"{types}{quiet}<p>{nothing}</p>",
        save=escape(words.save),
    )


def _unsubscribe(shown: Shown) -> str:
    """Write the button of a link that stands in a message."""
    link, words = shown.link, shown.words
    if not link.channel:
        return ""
    known = link.kind in shown.app.types
    said = words.unsubscribe.format(shown.title(link.kind)) if known else words.unsubscribe_all
    return f'<form method="post"><button name="{UNSUBSCRIBE}" value="1">{escape(said)}</button></form>'


def _type(shown: Shown, type_: TypePreferenceView) -> str:
    legend = f"<legend>{escape(shown.title(type_.name))}</legend>"
    if type_.critical:
        return f"<fieldset>{legend}{escape(shown.words.always)}</fieldset>"
    boxes = [
        _box(_named(type_.name, channel), shown.words.channels.get(channel, channel), is_on=type_.enabled and is_on)
        for channel, is_on in type_.channels.items()
    ]
    return f"<fieldset>{legend}{''.join(boxes)}</fieldset>"


def _box(name: str, label: str, *, is_on: bool) -> str:
    checked = " checked" if is_on else ""
    return f'<label><input type="checkbox" name="{escape(name)}" value="1"{checked}> {escape(label)}</label>'


def _named(name: str, channel: str) -> str:
    return f"type:{channel}:{name}"


def form_of(body: bytes) -> Mapping[str, str]:
    """Read what a form posts; empty where it is none."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_LIMIT))
    except ValueError:
        return {}


def is_one_click(body: bytes) -> bool:
    """Tell whether a mail program posts this, and no form of ours."""
    return all(word in body for word in _ONE_CLICK)


def unsubscribing(link: LinkedUser, app: AppSettings) -> PreferenceChange:
    """Return what one click changes: the type by this channel, or the channel where the app declares no such type."""
    if link.kind in app.types:
        return PreferenceChange(types={link.kind: TypeChange(channels={link.channel: False})})
    return PreferenceChange(channels={link.channel: False})


def change_of(form: Mapping[str, str], view: PreferencesView, channels: Sequence[str]) -> PreferenceChange:
    """Return the change that a posted form means, in which an unchecked box is left out."""
    types: dict[str, TypeChange | None] = {}
    for each in view.types:
        if each.critical:
            continue
        wanted = {channel: _named(each.name, channel) in form for channel in channels}
        types[each.name] = TypeChange(enabled=any(wanted.values()), channels=wanted)
    try:
        hours = Hours.parse(f"{form.get('since', '')}-{form.get('until', '')}")
    except ValueError:
        hours = Hours(0, 0)
    return PreferenceChange(enabled=_NOTHING not in form, types=types, quiet_hours=hours)


_PAGE: Final = """<!doctype html><html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>{title}</title>
<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:2rem auto;padding:0 1rem}}
fieldset{{border:1px solid #767676;border-radius:.4rem;margin:0 0 1rem}}legend{{font-weight:600}}
label{{display:inline-block;margin:.2rem 1.2rem .2rem 0}}button{{font:inherit;padding:.5rem 1rem}}</style></head>
<body><main><h1>{title}</h1>{notice}{unsubscribe}<form method="post"><p>{intro}</p>{fields}
<p><button name="save" value="1">{save}</button></p></form></main></body></html>"""
