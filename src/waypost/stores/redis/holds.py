"""Dedup keys on Redis, for stacks whose queue cannot claim them in its own write.

    <prefix>dedup:<hex of the key's 16 bytes>    gone with the end of its window
        ``h`` <first id, 16 bytes> <body hash, 16 bytes> <until when it is held, milliseconds>
        ``d`` <first id> <body hash>

A hold is decided by one script for each key, on the server's clock; an arrival's own key comes before its content key.
Where the other one says no, it stands for what was said before, or is let go of while that is not durable. So keys
need not lie together, and any cluster will do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from waypost.domain.dedup import Claim, ClaimKind
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.ports.dedup import Claimed, Dedup, LookUp
from waypost.ports.holds import HOLD_MS, Held
from waypost.ports.work import Conflicting, Duplicate, InProgress, NewNotification
from waypost.stores.redis.commands import Command, Redis, Script

_HOLD = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local own, body = ARGV[1], ARGV[2]
local kept = redis.call('GET', KEYS[1])
if kept then
  local id = string.sub(kept, 2, 17)
  if ARGV[3] == 'idempotency' and string.sub(kept, 18, 33) ~= body then return {'conflict', id, 0} end
  if string.sub(kept, 1, 1) == 'd' then return {'done', id, 0} end
  local left = tonumber(string.sub(kept, 34)) - now
  if left > 0 then return {'held', id, left} end
  own = id
end
if tonumber(ARGV[5]) > now then
  redis.call('SET', KEYS[1], 'h' .. own .. body .. string.format('%.0f', now + ARGV[4]), 'PXAT', ARGV[5])
end
return {'free', own, 0}
""")
_LET_GO = Script("""
local kept = redis.call('GET', KEYS[1])
if kept and string.sub(kept, 1, 17) == 'h' .. ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
""")


class RedisHolds:
    """The held dedup keys in Redis: see Holds."""

    def __init__(self, redis: Redis, prefix: str, look_up: LookUp | None = None) -> None:
        """Create the store; *look_up* asks a lasting store for keys that Redis does not know: it may have lost them."""
        self._redis = redis
        self._look_up = look_up
        self._prefix = f"{prefix}dedup:"

    async def hold(self, arrivals: Sequence[NewNotification]) -> list[Held]:
        """See Holds: a round trip for each kind of key, one more where an answer was no, a look-up in the store."""
        answers: list[Held] = [each.notification.id for each in arrivals]
        taken: list[list[Claim]] = [[] for _ in arrivals]
        for kind in (ClaimKind.IDEMPOTENCY, ClaimKind.CONTENT):
            durable = await self._hold_kind(kind, arrivals, answers, taken)
        if self._look_up is not None and any(taken):
            durable |= await self._ask_store(self._look_up, arrivals, answers, taken)
        refused: list[Command] = [
            self._done(claim, answer.first_id)
            if isinstance(answer, Duplicate) and answer.first_id in durable
            else _LET_GO([self._key(claim.key)], arrival.notification.id)
            for arrival, answer, claims in zip(arrivals, answers, taken, strict=True)
            for claim in claims
            if not isinstance(answer, bytes)
        ]
        if refused:
            await self._redis.execute(refused)
        return answers

    async def confirm(self, claims: Sequence[tuple[Claim, NotificationId]]) -> None:
        """See Holds."""
        said = [self._done(claim, first_id) for claim, first_id in claims]
        if said:
            await self._redis.execute(said)

    async def forget(self, keys: Sequence[bytes]) -> int:
        """End windows and holds now; return how many there were."""
        if not keys:
            return 0
        return sum(await self._redis.execute([("DEL", self._key(key)) for key in keys]))

    async def _hold_kind(
        self, kind: ClaimKind, arrivals: Sequence[NewNotification], answers: list[Held], taken: list[list[Claim]]
    ) -> set[NotificationId]:
        """Hold keys of one kind for arrivals that nothing refused yet; return what of the answers is durable."""
        asked = [
            (n, claim, answer)
            for n, (arrival, answer) in enumerate(zip(arrivals, answers, strict=True))
            for claim in arrival.claims
            if claim.kind is kind and isinstance(answer, bytes)
        ]
        said = [
            _HOLD([self._key(claim.key)], own, claim.body_hash, kind, HOLD_MS, claim.until) for _, claim, own in asked
        ]
        here: set[bytes] = set()
        durable: set[NotificationId] = set()
        for (n, claim, _), (state, found, left_ms) in zip(
            asked, await self._redis.execute(said) if said else [], strict=True
        ):
            first_id = NotificationId(found)
            match state:
                case b"free":
                    answers[n] = first_id
                    taken[n].append(claim)
                    here.add(first_id)
                case b"conflict":
                    answers[n] = Conflicting(first_id)
                case b"held" if first_id not in here:
                    answers[n] = InProgress(left_ms)
                case b"done":
                    durable.add(first_id)
                    answers[n] = Duplicate(first_id)
                case _:
                    answers[n] = Duplicate(first_id)
        return durable

    async def _ask_store(
        self,
        look_up: LookUp,
        arrivals: Sequence[NewNotification],
        answers: list[Held],
        taken: Sequence[Sequence[Claim]],
    ) -> set[NotificationId]:
        """Answer what the store knows, and return what of that is durable; a store that is away knows nothing."""
        keys = [claim.key for claims in taken for claim in claims]
        try:
            found = await look_up(keys, arrivals[0].notification.created_at)
        except Unavailable:
            return set()
        instead: dict[NotificationId, Held] = {}
        for n, claims in enumerate(taken if found else ()):
            held, known = answers[n], next((each for each in claims if each.key in found), None)
            if known is not None and isinstance(held, bytes):
                answers[n] = instead[NotificationId(held)] = _said_before(known, found[known.key])
        for n, answer in enumerate(answers):
            if isinstance(answer, Duplicate) and answer.first_id in instead:
                first = instead[answer.first_id]
                answers[n] = (
                    first if isinstance(first, Duplicate) else InProgress(1)
                )  # the first was refused: ask again
        return {first.first_id for first in instead.values() if isinstance(first, Duplicate)}

    def _done(self, claim: Claim, first_id: NotificationId) -> Command:
        return ("SET", self._key(claim.key), b"d" + first_id + claim.body_hash, "PXAT", claim.until)

    def _key(self, key: bytes) -> str:
        return self._prefix + key.hex()


def _said_before(claim: Claim, claimed: Claimed) -> Duplicate | Conflicting:
    if claim.kind is ClaimKind.IDEMPOTENCY and claim.body_hash != claimed.body_hash:
        return Conflicting(claimed.first_id)
    return Duplicate(claimed.first_id)


Forget = Callable[[Sequence[bytes]], Awaitable[int]]


class ForgetfulDedup:
    """The dedup keys of a store: a window that is ended there ends in Redis as well."""

    def __init__(self, dedup: Dedup, forget: Forget, holds: RedisHolds) -> None:
        """Create it; *forget* ends windows in the store, also of what is not recorded there yet."""
        self._dedup = dedup
        self._forget = forget
        self._holds = holds

    async def forget(self, keys: Sequence[bytes]) -> int:
        """See Dedup; first where it lasts, so that Redis learns of no key again that is about to be forgotten there."""
        return max(await self._forget(keys), await self._holds.forget(keys))

    async def drop_over(self) -> int:
        """See Dedup: Redis does that by itself."""
        return await self._dedup.drop_over()
