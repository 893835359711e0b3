"""Heads that differ by an id alone are read as the decoder reads each by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.http2.answer_head import AnswerHead, HeadReader, MalformedAnswer
from waypost.http2.frames import ConnectionFault
from waypost.http2.hpack import encode_headers
from waypost.http2.huffman import CODE_LENGTHS

LIMIT = 400


def coded(text: bytes) -> bytes:
    """*text* in Huffman code, padded (RFC 7541, 5.2), from the lengths alone, since the code is canonical."""
    codes: dict[int, str] = {}
    code = length = 0
    for bits, symbol in sorted((bits, symbol) for symbol, bits in enumerate(CODE_LENGTHS)):
        code <<= bits - length
        length = bits
        codes[symbol] = f"{code:0{bits}b}"
        code += 1
    bits_of = "".join([codes[byte] for byte in text])
    bits_of += "1" * (-len(bits_of) % 8)
    return int(bits_of or "0", 2).to_bytes(len(bits_of) // 8)


def block(status: bytes, name: bytes, value: bytes, last: bytes, *, huffman: bool) -> bytes:
    """A head with two fields whose values differ, the first by itself or in code."""
    first = encode_headers([(b":status", status), (name, b"")])[:-1]
    value = coded(value) if huffman else value
    return first + bytes([len(value) | 0x80 * huffman]) + value + encode_headers([(b"date", last)])


def read(reader: HeadReader, each: bytes) -> object:
    """What comes of a block: the head's parts, or the fault."""
    try:
        head: AnswerHead = reader.read(each)
    except (MalformedAnswer, ConnectionFault) as fault:
        return type(fault), str(fault)
    return head.status, head.fields, head.content_length


values = st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=40).map(
    lambda text: text.encode("latin-1")
)
blocks = st.builds(
    block,
    st.sampled_from([b"200", b"410"]),
    st.sampled_from([b"apns-id", b"content-length", b"x-id"]),
    st.one_of(st.uuids().map(lambda each: str(each).encode()), st.just(b"12"), values),
    st.sampled_from([b"Sun", b"Mon", b"Tue" * 30]),
    huffman=st.booleans(),
)


@given(st.lists(blocks, max_size=12))
def test_each_head_reads_as_by_a_reader_that_has_seen_no_other(heads: list[bytes]) -> None:
    """Whatever came before, and whatever is wrong with it."""
    reader = HeadReader(LIMIT)
    for each in heads:
        assert read(reader, each) == read(HeadReader(LIMIT), each)


@pytest.mark.parametrize("huffman", [False, True])
def test_a_head_that_differs_by_an_id_needs_no_decoder(*, huffman: bool) -> None:
    """From the third on: the second shows what differs."""
    reader = HeadReader(LIMIT)
    heads = [block(b"200", b"apns-id", b"id-%d%d" % (n, 7 * n), b"Sun", huffman=huffman) for n in range(4)]
    assert [reader.alike(each) for each in heads] == [None] * 4
    for each in heads[:2]:
        reader.read(each)
    found = reader.alike(heads[3])
    assert found is not None
    assert found.fields == ((b"apns-id", b"id-321"), (b"date", b"Sun"))
    assert reader.alike(block(b"200", b"apns-id", b"a\nb", b"Sun", huffman=huffman)) is None
    assert reader.alike(heads[3] + b"\x88") is None


def test_a_form_is_forgotten_when_the_table_changes() -> None:
    """A block that refers to the table means something else then."""
    reader = HeadReader(LIMIT)
    put = b"\x40\x01x\x01%d"
    reader.read(b"\x88" + put % 1)
    indexed = [b"\x88\xbe" + encode_headers([(b"id", b"%d" % n)]) for n in range(3)]
    for each in indexed[:2]:
        reader.read(each)
    assert reader.alike(indexed[2]) is not None
    reader.read(b"\x88" + put % 2)
    assert reader.alike(indexed[2]) is None
    assert reader.read(indexed[2]).fields == ((b"x", b"2"), (b"id", b"2"))


def test_a_value_that_may_enter_the_table_makes_no_form() -> None:
    """It was too large for a small table; a shorter one goes in, and later blocks refer to it."""
    reader = HeadReader(LIMIT)
    reader.read(b"\x3f\x09\x88")  # a table of 40 bytes
    for value in (b"aaaaaaaaa", b"bbbbbbbbb", b"ccccccccc"):
        reader.read(b"\x88\x40\x01x\x09" + value)
    short = b"\x88\x40\x01x\x01d"
    assert reader.alike(short) is None
    reader.read(short)
    assert reader.read(b"\x88\xbe").fields == ((b"x", b"d"),)
