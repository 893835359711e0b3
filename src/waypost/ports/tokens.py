"""Verifiers of tokens of other issuers: who may call, on the word of an issuer."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.scope import Scope
from waypost.domain.time import Instant


class Bearer(Struct, frozen=True):
    """The caller that a token speaks for, and what they may do."""

    app: AppId
    name: CallerId
    """The issuer's name and the subject, so that it is nobody's of another issuer and no key's."""
    scopes: frozenset[Scope]
    user: UserId | None
    """The end user, where the issuer's tokens are theirs."""
    expires_at: Instant


class TokenVerifier(Protocol):
    """A verifier of signed tokens."""

    async def verify(self, token: str) -> Bearer:
        """Verify *token* and return whom it speaks for.

        WaypostError (``unauthenticated``) says which check it does not pass, and nothing of the token; Unavailable
        where the issuer's keys are not known yet and cannot be had.
        """
        ...
