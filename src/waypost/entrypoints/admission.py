"""The admission of callers: by a credential, unless too many that came from its address were wrong."""

from __future__ import annotations

from waypost.domain import api_key
from waypost.domain.errors import ErrorCode, WaypostError
from waypost.entrypoints.callers import NOTHING_PRESENTED, Authenticator
from waypost.entrypoints.limits import EntrypointLimits, Visit
from waypost.pipeline.intake import Caller


async def caller_of(callers: Authenticator, limits: EntrypointLimits, presented: str | None, visit: Visit) -> Caller:
    """Find the caller; RateLimited for an address from which too many credentials were wrong.

    What was good within the window of failures is looked at from there, too: others may share the address. None at
    all is no failure: it guesses nothing. A credential is hashed once, by which all else knows it.
    """
    if presented is None:
        raise WaypostError(NOTHING_PRESENTED, ErrorCode.UNAUTHENTICATED)
    digest = api_key.hashed(presented)
    known = callers.known(digest)
    if known is not None:
        return known
    limits.refuse_barred(digest, visit)
    try:
        caller = await callers.verified(presented, digest)
    except WaypostError as refusal:
        if refusal.code is ErrorCode.UNAUTHENTICATED:
            await limits.was_wrong(digest, visit)
        raise
    limits.was_good(digest)
    return caller
