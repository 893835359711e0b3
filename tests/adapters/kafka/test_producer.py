"""What is not acknowledged is refused for now, whatever the reason."""

from __future__ import annotations

import pytest

from waypost.domain.errors import Unavailable
from waypost.stores.kafka.producer import Acknowledging, Outgoing
from waypost.stores.kafka.settings import KafkaMember

pytestmark = pytest.mark.asyncio

NOBODY = KafkaMember(bootstrap="127.0.0.1:9", answer_s=0.1)


async def test_an_acknowledgement_that_never_comes_is_unavailable() -> None:
    """The thread that reports them has ended: a frozen machine is no different."""
    producer = Acknowledging(NOBODY)
    await producer.stop()
    with pytest.raises(Unavailable, match="did not acknowledge"):
        await producer.produce([Outgoing("topic", b"key", b"value")])


async def test_each_message_that_cannot_be_queued_has_its_own_answer() -> None:
    """The others are waited for."""
    producer = Acknowledging(NOBODY)
    small, large = Outgoing("topic", b"key", b"value"), Outgoing("topic", b"key", bytes(2_000_000))
    answers = await producer.produce_each([small, large, small])
    await producer.stop()
    assert [str(each) for each in answers] == [
        "the log did not acknowledge: _MSG_TIMED_OUT",
        "the log takes nothing: MSG_SIZE_TOO_LARGE",
        "the log did not acknowledge: _MSG_TIMED_OUT",
    ]
