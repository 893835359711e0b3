"""The position of a process in what is fresh: the server says what of it is claimed."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.stores.sql.claims.lease import CLAIMED, Passed
from waypost.stores.sql.postgres.tail import ArrivalTail
from waypost.stores.sql.units import WHOLE


class Stand(Struct, frozen=True):
    """The place from which an app's fresh rows are to be looked for."""

    app: AppId
    after: int
    head: int
    """The last number that was heard of."""


class ClaimTail(ArrivalTail):
    """The apps of the whole store that may have something fresh, and after which number."""

    def __init__(self) -> None:
        super().__init__()
        self.begin_again()

    def begin_again(self) -> None:
        """Begin again, passing over nothing: what others were about to claim may not have been claimed."""
        self.start_over(WHOLE)
        unclaimed = f"AND seq > floor AND NOT {CLAIMED} AND"
        self._depth = {lane: sql.replace("AND seq > floor AND", unclaimed) for lane, sql in self._depth.items()}

    def stands(self, lane: Lane) -> list[Stand]:
        """List the apps that may have fresh rows of *lane*, as it was heard last."""
        keys = [(lane, app) for app in self._apps[lane]]
        return [Stand(key[1], self._cursors[key], max(self._head, self._heads.get(key, 0))) for key in keys]

    def passed(self, lane: Lane, stand: Stand, passed: Passed) -> None:
        """Go on from a number, unless something that came meanwhile was further back."""
        key = (lane, stand.app)
        if self._cursors.get(key) != stand.after:
            return
        if not passed.is_all:
            self._cursors[key] = passed.last
            return
        self._cursors[key] = max(stand.after, stand.head, passed.last)
        if max(self._head, self._heads.get(key, 0)) == stand.head:
            self._apps[lane].discard(stand.app)
