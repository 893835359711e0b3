"""Amendments in the words of tests."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.amendment import Amended, Withdraw
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.time import Instant
from waypost.ports.work import Work


async def withdraw(work: Work, app: AppId, ids: Sequence[NotificationId], why: str, now: Instant) -> list[Amended]:
    """Withdraw these, all for one reason."""
    return await work.amend([Withdraw(app, one, why) for one in ids], now)
