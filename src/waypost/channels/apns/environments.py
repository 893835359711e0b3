"""The two environments of Apple's, and which of them knows a token, learned from the answers."""

from __future__ import annotations

from collections import OrderedDict, deque

from waypost.channels.apns.tally import Tally
from waypost.domain.credential import CredentialId
from waypost.domain.ids import token_hash
from waypost.telemetry.events import Event
from waypost.telemetry.sink import Telemetry

REMEMBERED = 100_000
"""The most tokens of the other environment that are remembered; 16 bytes each and their place."""
RECENT = 500
"""The number of answers a worker judges tokens by: over these the share of unknown ones is taken."""
FEWEST = 20
"""The number of answers of all workers below which no share is taken."""


class ForeignTokens:
    """The tokens that the other environment took, by their hash; the one unused for longest makes room.

    A worker's own: all tokens of a user are sent to by the one worker that has the user's shard.
    """

    def __init__(self, room: int = REMEMBERED) -> None:
        self._room = room
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, token: str) -> bool:
        if not self._hashes:
            return False
        digest = token_hash(token)
        if digest not in self._hashes:
            return False
        self._hashes.move_to_end(digest)
        return True

    def __len__(self) -> int:
        return len(self._hashes)

    def learn(self, token: str, *, foreign: bool) -> None:
        """Remember which environment took *token*."""
        digest = token_hash(token)
        if not foreign:
            self._hashes.pop(digest, None)
            return
        self._hashes[digest] = None
        self._hashes.move_to_end(digest)
        if len(self._hashes) > self._room:
            self._hashes.popitem(last=False)


class Mistrust:
    """A watch for so many unknown tokens that the settings are probably wrong; it tells once each way.

    It begins at *share* of the recent answers of all workers and ends below half of it.
    """

    def __init__(self, share: float, tally: Tally, credential: CredentialId, telemetry: Telemetry) -> None:
        self._share = share
        self._tally = tally
        self._credential = str(credential)
        self._telemetry = telemetry
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._unknown = 0
        self.holds = False

    def heed(self, *, unknown: bool) -> None:
        """Count one answer: the token was unknown where it was tried first, or it was not."""
        if len(self._recent) == RECENT:
            if not unknown and not self._unknown and not self.holds:
                return  # unchanged
            self._unknown -= self._recent[0]
        self._recent.append(unknown)
        self._unknown += unknown
        self._tally.put(len(self._recent), self._unknown)
        if not unknown and not self.holds:
            return
        answers, all_unknown = self._tally.all()
        share = all_unknown / answers
        if not self.holds and share >= self._share and answers >= FEWEST:
            self._turn(Event.TOKENS_SUSPECT, share, answers)
        elif self.holds and share < self._share / 2:
            self._turn(Event.TOKENS_TRUSTED, share, answers)

    def heed_known(self, n: int) -> None:
        """Count *n* answers for tokens that were known."""
        if len(self._recent) == RECENT and not self._unknown and not self.holds:
            return  # unchanged
        for _ in range(n):
            self.heed(unknown=False)

    def _turn(self, event: Event, share: float, answers: int) -> None:
        self.holds = not self.holds
        self._telemetry.event(event, credential=self._credential, percent=round(100 * share), answers=answers)
