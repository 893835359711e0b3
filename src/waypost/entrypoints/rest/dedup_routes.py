"""The route that ends a dedup window early."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, post
from litestar.params import RawBody
from msgspec import Meta, Struct

from waypost.domain.submission import Submission
from waypost.entrypoints.access import SENDS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.answers import answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.recording import record
from waypost.ports.audit import Act

_submission = msgspec.json.Decoder(Submission)


class ForgottenView(Struct, frozen=True):
    """The result of forgetting."""

    forgotten: Annotated[int, Meta(description="Dedup windows that were open and have been ended.")]


@post(
    "/v1/dedup/forget",
    tags=["Notifications"],
    summary="Forget a submission's dedup keys",
    operation_id="forgetDedup",
    status_code=200,
    opt=speaks(
        {200: ForgottenView}, SENDS, body=Submission, example={"user_id": "user-1", "title": "Your parcel is here"}
    ),
)
async def forget(request: Call, body: RawBody) -> Response[bytes]:
    """Take a submission as it was sent, and end its content window and its idempotency key, if any:
    it can then be sent again.
    """
    submission = decode(_submission, body)
    await record(request, Act.DEDUP_FORGOTTEN, [""])
    return answer(200, ForgottenView(await api_of(request).intake.forget(request.user, submission)))


ROUTES = [forget]
