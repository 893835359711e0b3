"""The gate: who is at the browser."""

from __future__ import annotations

from typing import Final, Protocol

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.features.dashboard.admittance import is_from_here
from waypost.features.dashboard.desk import Asked
from waypost.features.dashboard.operators import LOCAL, Operator

_ONLY_HERE: Final = (
    "without a login, the dashboard is for browsers on this machine alone: open it as http://127.0.0.1 or localhost,"
    " and not through a proxy"
)


class Gate(Protocol):
    """A way to find out who is there."""

    async def operator(self, request: Asked) -> Operator:
        """Return the person; WaypostError where nobody is let in."""
        ...


class LocalGate:
    """The gate where nobody logs in: whoever is at this machine is an operator."""

    async def operator(self, request: Asked) -> Operator:
        """See Gate."""
        peer = "" if request.client is None else request.client.host
        version, host = request.scope["http_version"], request.headers.get("host", "")
        if not is_from_here(version, host, peer, request.headers):
            raise WaypostError(_ONLY_HERE, ErrorCode.FORBIDDEN)
        return LOCAL
