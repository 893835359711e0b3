"""The records of senders in Redis, as simplens keeps them.

    idempotency:<notification id>    JSON {"status": ..., "retry_count": ..., "updated_at": <ms>, "expires_at": <ms>}
        ``processing`` is the lock of a worker and ends by itself; ``delivered`` and ``failed`` stay for longer

One script decides for each key, on the server's clock. What was delivered stays so: a worker that comes late makes no
failure of it. A replay ends at another time, by which it is known, and is sent. Keys need not lie together, and any
cluster will do; they have no prefix, as others read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from waypost.domain.ids import NotificationId, format_id
from waypost.domain.sending_record import RecordStatus, SendingRecord
from waypost.domain.time import SECOND_MS
from waypost.ports.sending_records import Acquired, Right, Round
from waypost.stores.redis.commands import Redis, Script

_WRITE: Final = """
local function write(status, retries, expires_at, kept_ms)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local record = {status = status, retry_count = tonumber(retries), updated_at = now, expires_at = tonumber(expires_at)}
  redis.call('SET', KEYS[1], cjson.encode(record), 'PX', kept_ms)
end
local kept = redis.call('GET', KEYS[1])
local record = kept and cjson.decode(kept) or {}
local function is_delivered(expires_at)
  return record.status == 'delivered' and (not record.expires_at or record.expires_at == tonumber(expires_at))
end
"""
_ACQUIRE = Script(
    _WRITE
    + """
if record.status == 'processing' then return {0, redis.call('PTTL', KEYS[1])} end
if is_delivered(ARGV[2]) then return {0, -1} end
write('processing', ARGV[1], ARGV[2], ARGV[3])
return {kept and 2 or 1, 0}
"""
)
"""1: the lock is taken; 2: taken by a retry; 0: not, for so many milliseconds, or for good (requirements S4-T4)."""
_NOTE = Script(
    _WRITE
    + """
if is_delivered(ARGV[3]) then return 0 end
write(ARGV[1], ARGV[2], ARGV[3], ARGV[4])
return 1
"""
)
_RIGHTS: Final = {1: Right.FIRST, 2: Right.RETRY}
_decode = msgspec.json.Decoder(SendingRecord).decode


class RedisSendingRecords:
    """See SendingRecords."""

    def __init__(self, redis: Redis, lock_s: int, kept_s: int) -> None:
        """Create it; a lock ends after *lock_s*, what became of a notification is kept for *kept_s*."""
        self._redis = redis
        self._lock_ms = lock_s * SECOND_MS
        self._kept_ms = kept_s * SECOND_MS

    async def acquire(self, rounds: Mapping[NotificationId, Round]) -> Sequence[Acquired]:
        """See SendingRecords."""
        asked = [_ACQUIRE([_key(one)], each.retries, each.expires_at, self._lock_ms) for one, each in rounds.items()]
        return [_acquired(*reply) for reply in await self._redis.execute(asked)]

    async def note(self, came: Mapping[NotificationId, tuple[RecordStatus, Round]]) -> None:
        """See SendingRecords."""
        await self._redis.execute(
            [_NOTE([_key(one)], status, of.retries, of.expires_at, self._kept_ms) for one, (status, of) in came.items()]
        )

    async def read(self, ids: Sequence[NotificationId]) -> dict[NotificationId, SendingRecord]:
        """See SendingRecords."""
        replies = await self._redis.execute([("GET", _key(one)) for one in ids])
        return {one: _decode(reply) for one, reply in zip(ids, replies, strict=True) if reply is not None}


def _acquired(result: int, left_ms: int) -> Acquired:
    if result in _RIGHTS:
        return Acquired(_RIGHTS[result])
    return Acquired(Right.DELIVERED) if left_ms < 0 else Acquired(Right.HELD, left_ms)


def _key(notification_id: NotificationId) -> str:
    return f"idempotency:{format_id(notification_id)}"
