"""The order of addresses (RFC 8305, section 4), and the first that answers, over real sockets on loopback."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

from waypost.http2.eyeballs import Address, connect_first, interleaved

NEVER_S = 1000.0


def tcp(host: str, port: int, family: int = socket.AF_INET) -> Address:
    """An address as getaddrinfo gives it."""
    return (family, socket.SOCK_STREAM, 0, "", (host, port))


def test_families_take_turns_beginning_with_the_resolvers_first() -> None:
    six = [tcp(f"::{number}", 1, socket.AF_INET6) for number in range(3)]
    four = [tcp(f"127.0.0.{number}", 1) for number in range(2)]
    assert interleaved([*six, *four]) == [six[0], four[0], six[1], four[1], six[2]]
    assert interleaved([*four, *six]) == [four[0], six[0], four[1], six[1], six[2]]
    assert interleaved(four) == four
    assert interleaved([]) == []


@contextlib.contextmanager
def listening(host: str, port: int = 0) -> Iterator[socket.socket]:
    """A server that lets the system accept."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen(10)
        yield server


@contextlib.contextmanager
def black_hole(host: str) -> Iterator[int]:
    """An address whose packets are dropped: its queue of connections is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind((host, 0))
        server.listen(0)
        address = server.getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        yield address[1]


def connect(*addresses: Address, delay_s: float) -> str:
    """Whom it connects to."""

    async def run() -> str:
        with await connect_first(asyncio.get_running_loop(), addresses, delay_s) as sock:
            peer: str = sock.getpeername()[0]
            # Whatever else was tried has been given up.
            assert len(asyncio.all_tasks()) == 1
            return peer

    return asyncio.run(run())


def test_an_address_that_does_not_answer_delays_but_does_not_stop() -> None:
    """The next is tried while the first still hangs."""
    with black_hole("127.0.0.2") as port, listening("127.0.0.3", port):
        assert connect(tcp("127.0.0.2", port), tcp("127.0.0.3", port), delay_s=0.01) == "127.0.0.3"


def test_an_address_that_refuses_is_followed_by_the_next_at_once() -> None:
    """With a delay that no test would survive."""
    with listening("127.0.0.3") as server:
        port = server.getsockname()[1]
        assert connect(tcp("127.0.0.2", port), tcp("127.0.0.3", port), delay_s=NEVER_S) == "127.0.0.3"


def test_the_first_that_answers_is_taken() -> None:
    with listening("127.0.0.2") as first, listening("127.0.0.3", first.getsockname()[1]):
        port = first.getsockname()[1]
        assert connect(tcp("127.0.0.2", port), tcp("127.0.0.3", port), delay_s=NEVER_S) == "127.0.0.2"


def test_if_none_answers_the_last_failure_is_told() -> None:
    with listening("127.0.0.3") as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connect(tcp("127.0.0.2", port), tcp("127.0.0.3", port), delay_s=NEVER_S)
    with pytest.raises(OSError, match="no address"):
        connect(delay_s=NEVER_S)
