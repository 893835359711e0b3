"""The result of a replay for each notification, as routes answer it."""

from __future__ import annotations

from msgspec import Struct

from waypost.domain.errors import WaypostError
from waypost.domain.ids import NotificationId, format_id
from waypost.entrypoints.rest.problems import Problem, problem_of
from waypost.entrypoints.submitting import Id
from waypost.pipeline.intake import require_replayable
from waypost.ports.work import Acceptance


class ReplayResult(Struct, frozen=True, omit_defaults=True):
    """The result for one id: without *error*, its new round has begun."""

    id: Id
    error: Problem | None = None


def replay_result(notification_id: NotificationId, result: Acceptance) -> ReplayResult:
    """Say whether a new round began, or why not."""
    try:
        require_replayable(result)
    except WaypostError as error:
        return ReplayResult(format_id(notification_id), problem_of(error))
    return ReplayResult(format_id(notification_id))
