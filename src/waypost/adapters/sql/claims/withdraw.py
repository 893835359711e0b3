"""Withdrawing: claims say what is leased, so that whoever is asked decides."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.adapters.sql.cases import Cases
from waypost.adapters.sql.claims.claims import Claims
from waypost.adapters.sql.outbox.entries import WHOLE
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.adapters.sql.withdraw import TakeBack, take_back
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.progress import Held, NotOpen, Withdrawal


class Recall(Struct, frozen=True):
    """An order to take back what is not leased of some notifications."""

    app: AppId
    ids: tuple[NotificationId, ...]
    why: str


def _run(transaction: Transaction, ops: Sequence[Recall]) -> list[list[Withdrawal]]:
    ids = [one for op in ops for one in op.ids]
    cases, claims = Cases(transaction, ids, by_shard=False), Claims(transaction, ids)
    answers = [[_recall(transaction, cases, claims, op, one) for one in op.ids] for op in ops]
    cases.write()
    claims.write()
    return answers


WITHDRAW: Kind[Recall, list[Withdrawal]] = Kind("withdraw", _run, durable=True)


def _recall(
    transaction: Transaction, cases: Cases, claims: Claims, recall: Recall, notification_id: NotificationId
) -> Withdrawal:
    held = claims.held(notification_id)
    order = TakeBack(recall.app, notification_id, recall.why, Held(WHOLE in held, frozenset(held)))
    answer = take_back(transaction, cases.get(notification_id), order)
    if not isinstance(answer, NotOpen):
        for n, part in claims.of(notification_id).items():
            if n not in held:
                part.end()
    return answer
