"""The admission of callers: by a credential, unless too many keys that came from its address were guessed."""

from __future__ import annotations

from waypost.domain import api_key
from waypost.domain.errors import ErrorCode, WaypostError
from waypost.entrypoints.callers import NOTHING_PRESENTED, Authenticator, UnknownKey, is_token
from waypost.entrypoints.limits import EntrypointLimits, Visit
from waypost.pipeline.intake import Caller


async def caller_of(callers: Authenticator, limits: EntrypointLimits, presented: str | None, visit: Visit) -> Caller:
    """Find the caller; RateLimited for a key from an address where too many were guessed, and for an address over its
    limit of requests that nobody vouches for.

    A key that was good within the window of failures is looked at from there, too: others may share the address. A
    credential is hashed once, by which all else knows it.
    """
    if presented is None:
        await limits.count_unvouched(visit)
        raise WaypostError(NOTHING_PRESENTED, ErrorCode.UNAUTHENTICATED)
    digest = api_key.hashed(presented)
    known = callers.known(digest)
    if known is not None:
        return known
    if not is_token(presented):
        limits.refuse_barred(digest, visit)
    try:
        caller = await callers.verified(presented, digest)
    except UnknownKey:
        await limits.was_guessed(visit)
        raise
    except WaypostError as refusal:
        if refusal.code is ErrorCode.UNAUTHENTICATED:
            limits.was_bad(digest)
            await limits.count_unvouched(visit)
        raise
    limits.was_good(digest)
    return caller
