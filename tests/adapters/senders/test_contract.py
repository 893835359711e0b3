"""Senders of ours pass the contract that those of other packages are held to.

Those of APNs, FCM and Web Push, whose gateways are the lab's own, are held to more in ``test_faults``.
"""

from __future__ import annotations

import pytest

from waypost.contract import SenderContract


@pytest.fixture(autouse=True)
def _prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("waypost.channels.push.patience", "waypost.channels.webhook.sender"):
        monkeypatch.setattr(f"{module}.ANSWER_BY_S", 2.0)
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 1.5)
    monkeypatch.setattr("waypost.channels.webhook.sender.WRITTEN_BY_S", 1.5)


class TestSms(SenderContract):
    channel = "sms"


class TestUnifiedPush(SenderContract):
    channel = "unifiedpush"


class TestWebhook(SenderContract):
    channel = "webhook"
