"""The statements of membership, and where a process is.

member      INSERT, UPDATE of its own row; DELETE of those that are over, or were seen to end
ownership   UPDATE: taken where nobody has it, let go of; free again where its member is deleted
"""

from __future__ import annotations

import os
from pathlib import Path

LEASE_S = 10.0
"""Seconds for which a process that is not heard of keeps what it owns."""

_UNTIL = f"clock_timestamp() + interval '{LEASE_S} seconds'"
JOIN = f"INSERT INTO member (place, pid, started, shares, until) VALUES (?, ?, ?, ?, {_UNTIL}) RETURNING id"  # noqa: S608 - a constant
RENEW = f"UPDATE member SET until = {_UNTIL}, shares = ? WHERE id = ? AND started = ?"  # noqa: S608 - a constant
SHARERS = "SELECT count(*) FROM member WHERE shares AND until > clock_timestamp()"
OVER = "DELETE FROM member WHERE id IN (SELECT id FROM member WHERE until < clock_timestamp() FOR UPDATE SKIP LOCKED)"
ENDED = "DELETE FROM member WHERE place = ? AND pid = ANY(?)"
LEAVE = "DELETE FROM member WHERE id = ?"
TAKE = """\
UPDATE ownership SET member = ? WHERE name = ANY(ARRAY(
    SELECT name FROM ownership WHERE member IS NULL AND shard IS NOT NULL ORDER BY (shard + ?) % 64 LIMIT ?
    FOR UPDATE SKIP LOCKED
)) RETURNING shard
"""
TAKE_THESE = """\
UPDATE ownership SET member = ? WHERE name IN (
    SELECT name FROM ownership WHERE member IS NULL AND shard = ANY(?) FOR UPDATE SKIP LOCKED
) RETURNING shard
"""
LET_GO = "UPDATE ownership SET member = NULL WHERE member = ? AND shard = ANY(?)"
TAKE_ROLE = """\
INSERT INTO ownership (name, member) SELECT CAST(? AS text), id FROM member WHERE id = ?
ON CONFLICT (name) DO UPDATE SET member = excluded.member
WHERE ownership.member IS NULL OR ownership.member = excluded.member RETURNING name
"""
FENCE = "SELECT id FROM member WHERE id = ? AND started = ? FOR SHARE"
OWNED = "SELECT shard FROM ownership WHERE member = ? AND shard IS NOT NULL"


def place() -> str:
    """Name the place where process ids mean the same: this boot of the machine, and this container.

    Not in the words of the versions that judged those of their own place by ``/proc``.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{os.readlink('/proc/self/ns/pid')} of {boot}"
