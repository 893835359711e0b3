"""Signatures of webhooks, by the example of the specification and by two libraries that receivers use."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest
import standardwebhooks
import svix
from hypothesis import given
from hypothesis import strategies as st

from waypost.channels.webhook.signing import read_secret, secret_of, signed
from waypost.domain.errors import ConfigurationError

SHOWN = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def _shown(secret: bytes) -> str:
    return f"whsec_{base64.b64encode(secret).decode()}"


def test_the_example_of_the_specification() -> None:
    secret = secret_of(SHOWN)
    assert secret is not None
    assert signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY, (secret,)) == (
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    )


@given(new=st.binary(min_size=24, max_size=64), old=st.binary(min_size=24, max_size=64), number=st.integers())
def test_receivers_verify_with_either_secret_and_with_no_other(new: bytes, old: bytes, number: int) -> None:
    body = f'{{"n": {number}}}'.encode()
    headers = dict(signed("01a3-0", int(time.time()), body, (new, old)))
    for secret in (new, old):
        for library in (standardwebhooks.Webhook, svix.Webhook):
            library(_shown(secret)).verify(body, headers)  # raises where it does not hold
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(_shown(b"another secret of 24 byte")).verify(body, headers)
    with pytest.raises(svix.WebhookVerificationError):
        svix.Webhook(_shown(new)).verify(body + b" ", headers)


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_!", SHOWN.removeprefix("whsec_"), _shown(b"x" * 23), _shown(b"x" * 65)]
)
def test_what_is_no_secret_is_named_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_secret("apps.demo.webhook", "secret_file", str(file))
    assert caught.value.path == "apps.demo.webhook.secret_file"
    assert not text.removeprefix("whsec_") or text.removeprefix("whsec_") not in str(caught.value).split()


def test_a_file_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_secret("apps.demo.webhook", "old_secret_file", str(tmp_path / "none"))
