"""The parts that readers' marks add to a worker; their routes are in other services' shapes, which can be off."""

from __future__ import annotations

from typing import Final

from waypost.domain.time import Instant
from waypost.features.parts import Ground, Parts
from waypost.pipeline.sweep import PAGE
from waypost.stores.sql.added import AddedTable

_MARK: Final = (
    "CREATE TABLE IF NOT EXISTS mark"
    " (notification_id {blob} NOT NULL PRIMARY KEY, read_at {number}, hidden_at {number}){layout}"
)


async def drop_hidden(ground: Ground, now: Instant) -> int:
    """Delete a page of what readers hid, where ``retention.hidden`` says so."""
    return await ground.store.retention.drop_hidden(PAGE) if ground.config.retention.hidden == "delete" else 0


PARTS = Parts(tables=(AddedTable("mark", _MARK, of_notification=True),), drops=drop_hidden)
