"""The tests that every sender passes; pytest finds them in a class that names a channel."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from waypost.contract.bench import SenderBench, counterpart_of, sender_bench
from waypost.domain.content import Content
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable

BUSY = 20
STORM = 120


@cache
def _folder() -> Path:
    """Return a folder whose credentials are made once for all tests of a process, and which goes with it."""
    made = TemporaryDirectory(prefix="waypost-contract-")
    atexit.register(made.cleanup)
    return Path(made.name)


class SenderContract:
    """The promises of a sender whose gateway speaks HTTP. A subclass whose name begins with ``Test`` runs them::

    class TestPager(SenderContract):
        channel = "pager"
    """

    channel: ClassVar[str]

    def run(self, steps: Callable[[SenderBench], Awaitable[None]]) -> None:
        """Run the steps of one test on a bench of its own, once a first message was taken: there is access then."""

        async def run() -> None:
            async with sender_bench(self.channel, _folder()) as bench:
                got = await bench.outcome()
                assert isinstance(got, Taken), got
                bench.lab.records.reset()
                await steps(bench)

        asyncio.run(run())

    def test_each_message_arrives_once(self) -> None:
        """Send neighbours with equal messages and others, all at once."""

        async def steps(bench: SenderBench) -> None:
            batch = [bench.delivery() for _ in range(BUSY)]
            batch += [bench.delivery(Content(title=f"No. {n}", body="alone")) for n in range(BUSY)]
            for one, got in zip(batch, await bench.outcomes(batch), strict=True):
                assert isinstance(got, Taken), got
                assert bench.copies(one) == 1

        self.run(steps)

    def test_a_dead_token_is_gone(self) -> None:
        """Have the gateway say that nobody is there: the token is to be forgotten."""

        async def steps(bench: SenderBench) -> None:
            await bench.script({"do": {"gone": {}}})
            got = await bench.outcome()
            assert isinstance(got, Gone), got

        self.run(steps)

    def test_who_is_asked_to_wait_says_for_how_long(self) -> None:
        """Answer 429 with ``Retry-After``: nothing was taken, and no retry is spent."""

        async def steps(bench: SenderBench) -> None:
            await bench.script({"do": {"answer": {"status": 429, "retry_after": 7}}})
            got = await bench.outcome()
            assert isinstance(got, Throttled), got
            assert got.wait_ms == 7_000

        self.run(steps)

    def test_a_provider_that_fails_is_asked_again(self) -> None:
        """Answer 500, which is no word about the message."""

        async def steps(bench: SenderBench) -> None:
            await bench.script({"do": {"answer": {"status": 500, "reason": "InternalServerError"}}})
            got = await bench.outcome()
            assert isinstance(got, Unanswered | Unreachable), got
            await bench.script()
            assert isinstance(await bench.outcome(), Taken)

        self.run(steps)

    def test_what_was_taken_before_the_connection_broke_is_unanswered(self) -> None:
        """Break it then: who says ``Unreachable`` has the message sent twice where that was forbidden."""

        async def steps(bench: SenderBench) -> None:
            await bench.script({"match": {"times": 1}, "do": {"accept_then_drop": True}})
            one = bench.delivery()
            got = await bench.outcome(one)
            assert isinstance(got, Unanswered), got
            assert bench.copies(one) == 1
            assert isinstance(await bench.outcome(), Taken)

        self.run(steps)

    def test_a_provider_that_cannot_be_reached_took_nothing(self) -> None:
        """Refuse connections: the sender says so, and the message may go out again whatever was agreed for it."""

        async def steps(bench: SenderBench) -> None:
            await bench.script({"do": {"refuse_connections": True}})
            bench.lab.disconnect()
            got = await bench.outcome()  # it may have gone out before its connection was known to be broken
            assert isinstance(got, Unreachable | Unanswered), got
            got = await bench.outcome()
            assert isinstance(got, Unreachable), got
            assert not bench.accepted()

        self.run(steps)

    def test_silence_ends_in_the_time_that_was_promised(self) -> None:
        """Wait for longer than ``capabilities.request_timeout_ms``, and fail then."""

        async def run() -> None:
            _, account = counterpart_of(self.channel)
            async with sender_bench(self.channel, _folder(), account.prompt) as bench:
                to, promised_s = bench.make(), bench.sender.capabilities.request_timeout_ms / 1000
                await bench.script({"match": {"token": to.token}, "do": {"black_hole": {"accept": True}}})
                one, late = bench.delivery(to=to), asyncio.get_running_loop().create_future()
                late.get_loop().call_later(2 * promised_s + 5, late.cancel)
                sent = asyncio.ensure_future(bench.outcome(one))
                await asyncio.wait([sent, late], return_when=asyncio.FIRST_COMPLETED)
                assert sent.done(), f"no outcome in {promised_s:g} s"
                was_sent = bench.copies(one) > 0  # on a busy machine its time may be over before
                assert isinstance(sent.result(), Unanswered if was_sent else Unreachable), sent.result()

        asyncio.run(run())

    def test_what_is_too_large_is_refused_unsent(self) -> None:
        """Ask ``render``, too, which is what ``explain`` shows."""

        async def steps(bench: SenderBench) -> None:
            limit = bench.sender.capabilities.payload_limit_bytes
            one = bench.delivery(Content(title="Hello", body="x" * limit))
            assert bench.sender.render(one).refused
            got = await bench.outcome(one)
            assert isinstance(got, Refused), got
            assert not list(bench.lab.records.since(-1))

        self.run(steps)

    def test_what_is_shown_has_no_token(self) -> None:
        """Look at what ``render`` gives: it is printed for operators."""

        async def steps(bench: SenderBench) -> None:
            one = bench.delivery()
            shown = bench.sender.render(one)
            assert shown.refused is None
            assert shown.size_bytes <= shown.limit_bytes
            assert one.device.token not in f"{shown.headers} {shown.body!r}"

        self.run(steps)

    def test_stopping_reports_what_is_in_flight(self) -> None:
        """Stop a sender that waits for answers: a worker that ends writes down what came of everything."""

        async def steps(bench: SenderBench) -> None:
            await bench.script({"do": {"black_hole": {}}})
            reported: list[Outcome] = []
            bench.sender.send([bench.delivery() for _ in range(5)], lambda _, got: reported.append(got))
            await bench.sender.stop(0.1)
            assert len(reported) == 5
            assert not any(isinstance(got, Taken) for got in reported), reported

        self.run(steps)

    def test_in_a_storm_each_is_reported_once_and_rightly(self) -> None:
        """Compare what is said with what arrived: what is ``Taken`` did, and once; what did is not denied."""

        async def steps(bench: SenderBench) -> None:
            faults: list[tuple[float, dict[str, Any]]] = [
                (0.2, {"latency_ms": 5}),
                (0.03, {"drop": True}),
                (0.03, {"accept_then_drop": True}),
                (0.05, {"answer": {"status": 500, "accept": True}}),
                (0.05, {"answer": {"status": 429}}),
            ]
            await bench.script(*({"match": {"probability": share}, "do": do} for share, do in faults))
            batch = [bench.delivery() for _ in range(STORM)]
            got: list[tuple[Delivery, Outcome]] = []
            for begin in range(0, STORM, 10):
                some = batch[begin : begin + 10]
                got += zip(some, await bench.outcomes(some), strict=True)
            for one, outcome in got:
                copies = bench.copies(one)
                assert copies <= 1
                assert copies or not isinstance(outcome, Taken)
                assert not copies or isinstance(outcome, Taken | Unanswered), outcome
            assert any(isinstance(outcome, Taken) for _, outcome in got)

        self.run(steps)
