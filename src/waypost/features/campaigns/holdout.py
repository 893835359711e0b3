"""The holdout: users of a campaign who are told nothing, so that it can be compared with silence."""

from __future__ import annotations

from typing import Final

from waypost.domain.notification import Notification
from waypost.domain.routing import Candidate, Question, Rule, Verdict
from waypost.domain.settlement import Suppressed
from waypost.domain.variants import HOLDOUT

_SUPPRESSED: Final = Suppressed(HOLDOUT)


def _is_held_out(notification: Notification) -> bool:
    return notification.content.variant == HOLDOUT


def _judge(question: Question, _: Candidate) -> Verdict | None:
    return _SUPPRESSED if _is_held_out(question.notification) else None


RULE: Final = Rule("holdout", _judge, concerns=_is_held_out)
