"""What can go wrong between a caller and Waypost.

ClientError
├── ApiError        Waypost answered, and refused
└── ConnectionLost  no answer; whether the request was carried out is not known
"""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """The root of the tree."""


class ApiError(ClientError):
    """A problem answer (RFC 9457): *code* is stable, *faults* name the wrong fields.

    *retry_after_s* is when to ask again, where that helps.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", "internal"))
        self.detail = str(problem.get("detail", f"{status}, but not as Waypost answers; is it there?"))
        self.faults: list[dict[str, str]] = problem.get("faults", [])
        after = problem.get("retry_after")
        self.retry_after_s: int | None = after if isinstance(after, int) else None
        super().__init__(f"{self.code}: {self.detail}")


class ConnectionLost(ClientError):
    """The error that Waypost could not be reached, or did not answer in time.

    A submission with an idempotency key can be repeated safely: it is accepted once.
    """
