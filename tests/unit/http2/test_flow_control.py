"""One connection against a scripted server: whose body goes out when, under both windows (RFC 9113, 5.2 and 6.9)."""

from hyperframe.frame import DataFrame, SettingsFrame, WindowUpdateFrame

from tests.unit.http2.peer import Driven, answer, data, head, raw, settings, window
from waypost.http2.opening import RECEIVE_WINDOW, ConnectionLimits


def sizes(driven: Driven) -> list[int]:
    """The body bytes in each DATA frame written last."""
    return [len(frame.data) for frame in driven.written if isinstance(frame, DataFrame)]


def test_a_body_waits_for_its_streams_window_and_for_the_connections() -> None:
    """65,535 for the connection; more goes out as each window opens, in frames of the peer's size."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=100_000))
    driven.send(b"x" * 70_000)
    assert sizes(driven) == [16_384] * 3 + [16_383]
    assert driven.connection.room() == 0
    driven.hear(window(0, 10))
    assert sizes(driven) == [10]
    driven.hear(window(0, 100_000))
    assert sizes(driven) == [4455] and "END_STREAM" in driven.written[0].flags
    assert driven.connection.room() > 0


def test_a_stream_that_waits_for_its_own_window_holds_no_other() -> None:
    """Its window is spent, the connection's is not."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=5))
    driven.send(b"0123456789")
    assert sizes(driven) == [5]
    driven.send(b"abc")
    assert sizes(driven) == [3]
    driven.hear(window(1, 100))
    assert sizes(driven) == [5]


def test_a_lowered_initial_window_makes_windows_negative() -> None:
    """RFC 9113, 6.9.2: nothing is sent until the window is above zero again."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=50))
    driven.send(b"x" * 100)
    driven.hear(settings(INITIAL_WINDOW_SIZE=10))
    assert sizes(driven) == []
    driven.hear(window(1, 40))
    assert sizes(driven) == []
    driven.hear(window(1, 1))
    assert sizes(driven) == [1]
    driven.hear(settings(INITIAL_WINDOW_SIZE=59))
    assert sizes(driven) == [49]


def test_of_several_initial_windows_the_last_counts() -> None:
    """In one SETTINGS frame, and in one read; what goes out comes once, after the acknowledgements."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=5))
    driven.send(b"x" * 100)
    windows = [b"\0\4" + size.to_bytes(4, "big") for size in (90, 0, 20, 30)]
    driven.hear(raw(4, 0, 0, windows[0] + windows[1] + windows[2]) + raw(4, 0, 0, windows[3]))
    assert [type(frame) for frame in driven.written] == [SettingsFrame, SettingsFrame, DataFrame]
    assert sizes(driven) == [25]


def test_an_initial_window_may_rise_where_the_stream_with_the_largest_is_over() -> None:
    """RFC 9113, 6.9.2 speaks of streams that are open, and of what they have left."""
    driven = Driven()
    driven.send(b"x")
    driven.send(b"x")
    driven.hear(window(1, 2**31 - 1 - 65_535), answer(1), settings(INITIAL_WINDOW_SIZE=2**31 - 1))
    assert not driven.connection.failure


def test_bodies_that_wait_for_the_connection_go_on_in_turn() -> None:
    """The one that came first is served first; one whose own window is closed keeps nobody waiting."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=30_000, MAX_CONCURRENT_STREAMS=100))
    for size in (40_000, 30_000, 20_000, 10_000):
        driven.send(b"x" * size, flush=False)
    driven.hear(window(0, 15_000))
    sent = [(frame.stream_id, len(frame.data)) for frame in driven.written if isinstance(frame, DataFrame)]
    assert sum(size for stream_id, size in sent if stream_id == 1) == 30_000
    assert sent[-1] == (7, 535) and sum(size for _, size in sent) == 65_535 + 15_000
    driven.hear(window(1, 5000), window(0, 9466), window(1, 5000))
    sent = [(frame.stream_id, len(frame.data)) for frame in driven.written if isinstance(frame, DataFrame)]
    assert sent == [(7, 9465), (1, 1)]


def test_new_settings_are_acknowledged_before_they_are_used() -> None:
    """Some servers hold a client to the old window until the acknowledgement came (the h2 library does)."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=5))
    driven.send(b"x" * 100)
    driven.hear(settings(INITIAL_WINDOW_SIZE=50))
    assert [type(frame) for frame in driven.written] == [SettingsFrame, DataFrame]
    assert sizes(driven) == [45]


def test_a_larger_frame_size_is_used() -> None:
    """One frame where the peer takes it."""
    driven = Driven(settings(MAX_FRAME_SIZE=60_000))
    driven.send(b"x" * 50_000)
    assert sizes(driven) == [50_000]


def test_the_connections_receive_window_is_given_back() -> None:
    """After half of it, also for streams nobody waits for any more, padding included."""
    driven = Driven(limits=ConnectionLimits(1, 1000, 1 << 30, 2000))
    driven.send(b"x")
    driven.hear(head(1))
    given_back = 0
    for _ in range(100):
        driven.hear(data(1, b"x" * 16_000, padding=200))
        given_back += sum(
            [f.window_increment for f in driven.written if isinstance(f, WindowUpdateFrame) and not f.stream_id]
        )
    assert RECEIVE_WINDOW // 2 < given_back <= 100 * 16_201


def test_short_bodies_use_up_the_connections_window_as_well() -> None:
    """Four fit, the fifth goes as far as there is room; the rest when there is more."""
    driven = Driven(settings(INITIAL_WINDOW_SIZE=100_000))
    sent = []
    for _ in range(5):
        driven.send(b"x" * 16_000)
        sent += sizes(driven)
    assert sent == [16_000] * 4 + [1535]
    assert driven.connection.room() == 0


def test_padding_gives_its_window_back() -> None:
    """RFC 9113, 6.1: all of a DATA frame counts; of an answer that is padding alone, too, nothing is kept."""
    driven = Driven()
    driven.send(b"x")
    driven.hear(head(1))
    given_back = {0: 0, 1: 0}
    padding = data(1, b"", padding=255)
    for _ in range(10):
        for frame in driven.hear(padding * 500):
            given_back[frame.stream_id] += frame.window_increment
    assert given_back[1] == 5000 * 256
    assert RECEIVE_WINDOW // 2 < given_back[0] <= 5000 * 256
