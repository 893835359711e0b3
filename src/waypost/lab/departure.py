"""The end of a connection in good order: which streams a GOAWAY covers, and which were never processed."""

from collections.abc import Iterable

import msgspec
from hyperframe.frame import GoAwayFrame

from waypost.lab.faults import Goaway

LAST_POSSIBLE_STREAM = 2**31 - 1


class Departure:
    """The steps of a connection to its GOAWAY (RFC 9113 section 6.8); before one is ordered it lets everything pass."""

    def __init__(self) -> None:
        self.fault: Goaway | None = None
        """The fault, set while requests are gathered for a GOAWAY that is still to come."""
        self.last_allowed: int | None = None
        """The last stream id that was announced; None before that."""
        self.last_processed = 0
        self._held: list[int] = []

    def turns_away(self, stream_id: int) -> bool:
        """Tell whether a stream lies above what was announced, so that it is not even looked at."""
        return self.last_allowed is not None and stream_id > self.last_allowed

    def begin(self, stream_id: int, fault: Goaway) -> None:
        """Gather from now on, this stream first."""
        self.fault, self._held = fault, [stream_id]

    def hold(self, stream_id: int) -> None:
        """Keep a complete request unprocessed until it is known whether it is covered."""
        self._held.append(stream_id)

    def decide(self, open_streams: Iterable[int]) -> list[int]:
        """Fix the last stream id, and list the gathered streams it covers, in order."""
        if self.fault is None:
            return []
        still_open = set(open_streams)
        held = sorted(number for number in self._held if number in still_open)
        covered = held[: {"all": len(held), "none": 0, "half": len(held) // 2}[self.fault.last_stream]]
        self.last_allowed = max(covered[-1] if covered else 0, self.last_processed)
        self.fault, self._held = None, []
        return [number for number in held if number <= self.last_allowed]

    def end_with(self, open_streams: Iterable[int]) -> int:
        """Cover every stream that has arrived: what is in flight is the last."""
        self.last_allowed = last = max(open_streams, default=self.last_processed)
        return last


def debug_data(fault: Goaway) -> bytes:
    """Build Apple's debug data: JSON with a reason."""
    return msgspec.json.encode({"reason": fault.reason}) if fault.reason else b""


def goaway(last_stream_id: int, code: int, debug: bytes) -> bytes:
    """Build a GOAWAY frame. Written by hand, since h2 would take it for the end of the connection."""
    return GoAwayFrame(0, last_stream_id=last_stream_id, error_code=code, additional_data=debug).serialize()
