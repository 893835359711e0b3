"""What an app's defaults say of channels, held to how long sending is worthwhile."""

from __future__ import annotations

import msgspec
import pytest

from waypost.bootstrap.senders import check_default_channels
from waypost.config import AppSettings, Config
from waypost.domain.channel_steps import SubmittedChannels
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.preferences import TypeSettings
from waypost.domain.submission import Defaults, NotificationType

STEPS = msgspec.convert([{"to": "inapp", "until": "opened", "for": "30s"}, "webhook"], SubmittedChannels)


def test_a_type_whose_validity_is_over_before_its_last_channel_is_refused() -> None:
    types = {NotificationType("otp"): TypeSettings(ttl_s=30)}
    senders, defaults = {"inapp": object(), "webhook": object()}, Defaults(channels=STEPS)
    app = AppSettings(senders=senders, types=types, defaults=defaults)
    with pytest.raises(ConfigurationError, match=r"apps.demo.types.otp.ttl_s: is over before the last"):
        check_default_channels(Config(apps={AppId("demo"): app}))
    enough = {NotificationType("otp"): TypeSettings(ttl_s=31)}
    check_default_channels(Config(apps={AppId("demo"): msgspec.structs.replace(app, types=enough)}))
