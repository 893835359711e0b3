"""Which requests have a body that somebody reads: that of no other request is received."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from litestar.handlers import HTTPRouteHandler

from waypost.entrypoints.rest.answers import spoken_of

BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
_PARAMETER = re.compile(r"\{[^}]*\}")


class TakenBodies:
    """The methods and paths of routes that take a body."""

    def __init__(self, routes: Iterable[HTTPRouteHandler]) -> None:
        self._patterns = {method: _pattern(_paths(routes, method)) for method in BODY_METHODS}

    def takes(self, method: str, path: str) -> bool:
        """Tell whether a route of *path* reads the body of *method*."""
        pattern = self._patterns.get(method)
        return pattern is not None and pattern.fullmatch(path) is not None


def _paths(routes: Iterable[HTTPRouteHandler], method: str) -> list[str]:
    """List the paths of *method*; where nobody is known, only those that say that they read a body."""
    taking = [each for each in routes if method in {str(one) for one in each.http_methods}]
    return sorted(
        path for each in taking if (spoken := spoken_of(each)).access or spoken.body is not None for path in each.paths
    )


def _pattern(paths: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join("[^/]+".join(map(re.escape, _PARAMETER.split(path))) for path in paths) or r"(?!)")
