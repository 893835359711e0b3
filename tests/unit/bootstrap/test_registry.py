"""Which plug-ins are taken, and how those that are not stop the start."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint

import pytest
from msgspec import Struct
from msgspec.structs import replace

from waypost.bootstrap.registry import channels_of, installed, registered
from waypost.bootstrap.senders import content_checks
from waypost.config import AppSettings
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import ApnsPushType, Content, Kind
from waypost.domain.device import Platform
from waypost.domain.errors import ConfigurationError
from waypost.ports.plugin import ENTRY_POINTS, SenderPlugin


class PagerSettings(Struct, frozen=True):
    """Nothing to say."""


def _build(*_: object) -> None:
    raise AssertionError("nothing is sent here")


PAGER = SenderPlugin(
    channel=Channel("pager"),
    title="Pager",
    platforms=(Platform("pager"),),
    settings=PagerSettings,
    build=_build,  # type: ignore[arg-type] # never called
)


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Somebody's module with plug-ins in it."""
    module = types.ModuleType("acme_push")
    for name, plugin in {
        "pager": PAGER,
        "siren": replace(PAGER, channel=Channel("siren")),
        "second_web": replace(PAGER, channel=Channel("second_web"), platforms=(Platform("web"),)),
        "retry": replace(PAGER, channel=Channel("retry")),
        "lost": replace(PAGER, channel=Channel("lost"), platforms=(Platform("unknown"),)),
        "number": 7,
    }.items():
        setattr(module, name, plugin)
    setattr(module, "Loud", replace(PAGER, channel=Channel("Loud")))  # noqa: B010 - as those above
    monkeypatch.setitem(sys.modules, "acme_push", module)
    return module


def entry(name: str, value: str | None = None) -> EntryPoint:
    """As a distribution's metadata has it."""
    return EntryPoint(name, value or f"acme_push:{name}", ENTRY_POINTS)


OURS = [EntryPoint(name, f"waypost.channels.{name}.plugin:PLUGIN", ENTRY_POINTS) for name in ("apns", "fcm", "webpush")]


def test_our_own_senders_come_through_the_same_door() -> None:
    served = {plugin.channel: plugin.platforms for plugin in registered(OURS)}
    assert served == {"apns": ("ios",), "fcm": ("android", "ios_fcm", "web_fcm"), "webpush": ("web",)}
    assert served.items() <= {plugin.channel: plugin.platforms for plugin in installed()}.items()


@pytest.mark.usefixtures("acme")
def test_a_plug_in_from_elsewhere_stands_beside_them() -> None:
    plugins = registered([*OURS, entry("pager")])
    assert [plugin.channel for plugin in plugins] == ["apns", "fcm", "pager", "webpush"]
    assert channels_of(plugins)[Platform("pager")] == "pager"


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("entries", "path", "why"),
    [
        (
            [entry("pager", "nowhere.at_all:PLUGIN")],
            "plug-in pager (nowhere.at_all:PLUGIN)",
            "cannot be loaded: ",
        ),
        ([entry("absent")], "plug-in absent (acme_push:absent)", "cannot be loaded: AttributeError"),
        ([entry("number")], "plug-in number (acme_push:number)", "is no SenderPlugin but of the type int"),
        ([entry("beeper", "acme_push:pager")], "plug-in beeper (acme_push:pager)", "its channel is pager"),
        ([entry("Loud")], "plug-in Loud (acme_push:Loud)", "'Loud' is no name for a channel"),
        ([entry("lost")], "plug-in lost (acme_push:lost)", "'unknown' is no name for a channel or a platform"),
        ([entry("retry")], "plug-in retry (acme_push:retry)", "another key of an app's settings"),
        ([entry("pager"), entry("pager", "acme_push:pager ")], "plug-in pager", "channel pager is acme_push:pager's"),
        ([entry("pager"), entry("siren")], "plug-in siren (acme_push:siren)", "platform pager is acme_push:pager's"),
        ([*OURS, entry("second_web")], "plug-in webpush", "the platform web is acme_push:second_web's already"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named_with_the_reason(entries: list[EntryPoint], path: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        registered(entries)
    assert caught.value.path.startswith(path)
    assert why in str(caught.value)


def test_a_channel_that_the_app_has_not_comes_with_what_to_write_to_have_it() -> None:
    """Its section, with what must be in it, as waypost.yaml has it; a word that names no channel has none."""
    steps = (ChannelStep("inapp"), ChannelStep("apns"), ChannelStep("pigeon"))
    content = Content(title="Hello", channels=steps)
    found = [f.why for check in content_checks(AppSettings(), installed()) for f in check(content, Kind.VISIBLE)]
    assert found == [
        "the app has no inapp account; it has none: put `inapp: {}` under the app in waypost.yaml",
        "the app has no apns account; it has none: put `apns: {topic: …}` under the app in waypost.yaml",
        "the app has no pigeon account; it has none",
    ]


@pytest.mark.parametrize(
    ("content", "paths"),
    [
        (Content(title="Hello"), []),
        (Content(title="Hello", overrides={Channel("webpush"): {"tag": "x"}}), []),
        (Content(title="Hello", overrides={Channel("wbpush"): {"tag": "x"}}), ["overrides"]),
        (Content(title="Hello", push_type=ApnsPushType.VOIP), ["push_type"]),
    ],
)
def test_what_no_channel_of_the_app_understands_is_refused(content: Content, paths: list[str]) -> None:
    found = [f for check in content_checks(AppSettings(), registered(OURS)) for f in check(content, Kind.VISIBLE)]
    assert [fault.path for fault in found] == paths
