"""The parts that readers' marks add to a worker; their routes are in other services' shapes, which can be off."""

from __future__ import annotations

from typing import Final

from waypost.features.parts import Parts
from waypost.stores.sql.added import AddedTable

_MARK: Final = (
    "CREATE TABLE IF NOT EXISTS mark"
    " (notification_id {blob} NOT NULL PRIMARY KEY, read_at {number}, hidden_at {number}){layout}"
)

PARTS = Parts(tables=(AddedTable("mark", _MARK, of_notification=True),))
