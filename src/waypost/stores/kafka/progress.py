"""The progress of a partition: a watermark, and what is settled beyond it.

The committed offset is the lowest one that is not settled. What is settled beyond travels in the commit's metadata
(4,096 characters at most): a bit an offset, counted from the watermark, in base64. Offsets that hold no message of
ours (transaction markers, aborted messages) count as settled.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

SPAN = 24_000
"""The offsets beyond the watermark that the metadata has room for; a partition that is further ahead pauses."""

_MARK = "1:"
"""The number of this format."""


class PartitionProgress:
    """The progress of one partition, as its present owner sees it."""

    def __init__(self, watermark: int, metadata: str | None) -> None:
        self.position = watermark
        """The next offset to be received."""
        self._open: dict[int, None] = {}
        """The offsets received and not settled, in order."""
        self._settled_before = frozenset(_settled_in(watermark, metadata))
        """The offsets settled by a former owner."""
        self._settled_ahead: set[int] = set()
        """The offsets settled before they were received: of a message's replacement, settled in its turn."""

    def receive(self, offset: int) -> bool:
        """Take note of a message; False where it is settled already."""
        self.position = offset + 1
        if offset in self._settled_before:
            return False
        if offset in self._settled_ahead:
            self._settled_ahead.discard(offset)
            return False
        self._open[offset] = None
        return True

    def reach(self, offset: int) -> None:
        """Move the position to *offset*, the end of the partition: nothing of ours comes before."""
        self.position = max(self.position, offset)

    def settle(self, offset: int) -> None:
        """Mark a message as settled."""
        if offset in self._open:
            del self._open[offset]
        elif offset >= self.position:
            self._settled_ahead.add(offset)

    @property
    def watermark(self) -> int:
        """The lowest offset that is not settled."""
        return next(iter(self._open), self.position)

    @property
    def span(self) -> int:
        """The distance from its watermark to its position."""
        return max(self.position, max(self._settled_before, default=0)) - self.watermark

    def commit(self, settling: set[int]) -> tuple[int, str]:
        """Return the offset and metadata to commit with the settlement of *settling*, which is not noted yet."""
        ahead = self._settled_ahead | {offset for offset in settling if offset >= self.position}
        still_open = [offset for offset in self._open if offset not in settling]
        watermark = still_open[0] if still_open else self.position
        ahead |= {offset for offset in self._settled_before if offset >= self.position}
        top = max(self.position, max(ahead, default=0) + 1)
        if top == watermark:
            return watermark, ""
        bits = bytearray(b"\xff" * -(-(top - watermark) // 8))
        unsettled = [*still_open, *(offset for offset in range(self.position, top) if offset not in ahead)]
        for offset in unsettled:
            at = offset - watermark
            bits[at // 8] &= ~(1 << at % 8)
        for at in range(top - watermark, 8 * len(bits)):
            bits[at // 8] &= ~(1 << at % 8)
        return watermark, _MARK + base64.b64encode(bits).decode()


def _settled_in(watermark: int, metadata: str | None) -> Iterator[int]:
    """Yield the offsets that *metadata* says are settled; what cannot be read says nothing, and is delivered again."""
    if not metadata or not metadata.startswith(_MARK):
        return
    try:
        bits = base64.b64decode(metadata.removeprefix(_MARK), validate=True)
    except binascii.Error:
        return
    for at, byte in enumerate(bits):
        for bit in range(8):
            if byte >> bit & 1:
                yield watermark + 8 * at + bit
