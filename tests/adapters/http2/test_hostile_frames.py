"""Each thing that a server may not do, over TLS, at the worst moment: with two requests in flight."""

import asyncio
from typing import Any

import pytest
from hyperframe.frame import GoAwayFrame, RstStreamFrame

from tests.adapters.http2.client import Tls, client
from tests.adapters.http2.scripted import Served, ordinary, scripted
from tests.tables import AddRow
from tests.unit.http2 import peer
from tests.unit.http2.faults import OF_A_STREAM, OF_THE_CONNECTION, Fault
from waypost.http2 import Answer, Lost, Unknown

OK = Answer(200, (), b"ok")
LIMITS: dict[str, Any] = {"max_response_bytes": 1000, "max_header_list_bytes": 2000}
# A client that keeps up with the answers has nothing against PINGs.
NO_FAULT_WHEN_READ = "PING flood"


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", OF_A_STREAM, ids=lambda fault: fault.name)
async def test_the_request_ends_and_its_neighbour_is_answered(tls: Tls, fault: Fault, table: AddRow) -> None:
    """RFC 9113, 5.4.2: RST_STREAM, Unknown with the reason, the same connection goes on."""

    async def breaks(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        await served.request()
        await served.request()
        served.say(*fault.pieces)
        reset = await served.until(RstStreamFrame)
        served.say(peer.answer(3))
        assert reset.stream_id == 1
        await served.answer_all()

    async with scripted(tls.server("h2"), breaks) as port, client(port, tls, initial_stream_limit=2, **LIMITS) as one:
        broken, neighbour = await asyncio.gather(one.ask(), one.ask())
        assert isinstance(broken, Unknown) and broken.kind is Lost.BAD_ANSWER and fault.reason in broken.reason
        assert neighbour == OK and await one.ask() == OK
        assert one.pool.stats.opened_total == 1
    table(
        "hostile HTTP/2 frames",
        what=fault.name,
        ends="its request: Unknown; RST_STREAM; neighbours go on",
        reason=broken.reason,
    )


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    [fault for fault in OF_THE_CONNECTION if fault.name != NO_FAULT_WHEN_READ],
    ids=lambda fault: fault.name,
)
async def test_the_connection_ends_and_the_next_one_serves(tls: Tls, fault: Fault, table: AddRow) -> None:
    """RFC 9113, 5.4.1: GOAWAY, Unknown with the reason for what was in flight, each once; then another connection."""

    async def breaks(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        await served.request()
        await served.request()
        served.say(*fault.pieces)
        goaway = await served.until(GoAwayFrame)
        assert goaway.error_code != 0

    async with (
        scripted(tls.server("h2"), breaks, ordinary) as port,
        client(port, tls, initial_stream_limit=2, **LIMITS) as one,
    ):
        first, second = await asyncio.gather(one.ask(), one.ask())
        assert isinstance(second, Unknown) and fault.reason in second.reason
        assert second.kind is Lost.CONNECTION_LOST
        assert first in (OK, second)
        assert await one.ask() == OK
        assert one.pool.stats.opened_total == 2
    table(
        "hostile HTTP/2 frames",
        what=fault.name,
        ends="the connection: Unknown; GOAWAY; the next one serves",
        reason=second.reason,
    )
