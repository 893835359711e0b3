"""The holdout: users of a campaign who are told nothing, so that it can be compared with silence."""

from __future__ import annotations

from typing import Final

from waypost.domain.routing import Candidate, Question, Rule, Verdict
from waypost.domain.settlement import Suppressed
from waypost.domain.variants import HOLDOUT

_SUPPRESSED: Final = Suppressed(HOLDOUT)


def _is_held_out(question: Question) -> bool:
    return question.notification.content.variant == HOLDOUT


def _judge(_: Question, __: Candidate) -> Verdict | None:
    return _SUPPRESSED


RULE: Final = Rule("holdout", _judge, concerns=_is_held_out)
