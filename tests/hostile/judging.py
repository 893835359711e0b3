"""Whether a door answers as it must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.hostile.behind import Behind
from tests.hostile.corpus import Case, Kept, Must, Refused
from tests.hostile.doors import Answer, Door, NoForm, Told, Took
from waypost.domain.notification import Notification


async def judged(door: Door, cases: list[Case], otherwise: Mapping[str, Must]) -> tuple[list[str], Counter[str]]:
    """What is wrong with the answers, and how many there were of each sort; *otherwise* says what else is required."""
    answers = await door.offer(cases)
    complaints: list[str] = []
    sorts: Counter[str] = Counter()
    for case, answer in zip(cases, answers, strict=True):
        must = otherwise.get(case.name, case.must)
        wrong = await _wrong(door.behind, must, answer)
        sorts[_SORTS[type(answer)]] += 1
        sorts["otherwise"] += case.name in otherwise
        if wrong:
            complaints.append(f"{case.name}: {wrong}")
    return complaints + door.behind.log_faults(), sorts


_SORTS: Final[dict[type, str]] = {Took: "kept", Told: "refused", NoForm: "no form"}


async def _wrong(service: Behind, must: Must, answer: Answer) -> str | None:
    match must, answer:
        case _, NoForm():
            return None
        case Kept(fields), Took(id_):
            return _differs(fields, await service.stored(id_))
        case Refused(code, field), Told(said, at) if code == said:
            return None if field in at else f"the fields at fault are {at}, not {field}"
        case _:
            return f"must be {must}, was {answer}"[:300]


def _differs(fields: Mapping[str, Any], stored: Notification) -> str | None:
    for name, said in fields.items():
        kept = _stored_as(name, stored)
        if kept is not _NOT_STORED and kept != said:
            return f"{name} was kept as {kept!r}, not as {said!r}"[:300]
    return None


_NOT_STORED: Final = object()


def _stored_as(name: str, stored: Notification) -> Any:
    """A field in the words of a submission."""
    match name:
        case "idempotency_key":
            return _NOT_STORED
        case "user_id":
            return stored.user_id
        case "device_ids":
            return list(stored.device_ids)
        case "actions":
            made = (msgspec.to_builtins(each) for each in stored.content.actions)
            return [{name: value for name, value in each.items() if value is not None} for each in made]
        case _:
            return msgspec.to_builtins(getattr(stored.content, name))
