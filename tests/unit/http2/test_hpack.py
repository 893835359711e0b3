"""Header blocks, against the `hpack` library as an independent judge."""

from collections.abc import Callable

import hpack
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import given
from hypothesis import strategies as st

from waypost.http2.frames import COMPRESSION_ERROR, ConnectionFault
from waypost.http2.hpack import STATIC_TABLE, HeaderDecoder, HeaderListTooLarge, decode_headers, encode_headers
from waypost.http2.huffman import CODE_LENGTHS, HuffmanError, decode, decode_by_bytes

NO_LIMIT = 1 << 30
NAMES = st.one_of(
    st.sampled_from([field[0] for field in STATIC_TABLE]), st.from_regex(rb"[a-z0-9-]{1,40}", fullmatch=True)
)
VALUES = st.one_of(st.sampled_from([field[1] for field in STATIC_TABLE]), st.binary(max_size=300))
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=12)
# Long enough for zlib, with symbols whose codes are too long for it.
PRINTED = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=110, max_size=200).map(str.encode)
# What servers say again and again, so that they refer to it, and enough of it to push the oldest out.
REPEATED = st.lists(
    st.tuples(
        st.sampled_from([b"server", b"x-a", b"x-b"]), st.sampled_from([b"h2o", b"a" * 700, b"b" * 1500, b"c" * 5000])
    ),
    max_size=8,
)


def plain(fields: object) -> list[tuple[bytes, bytes]]:
    """The library's fields as pairs."""
    return [(bytes(name), bytes(value)) for name, value in fields]  # type: ignore[attr-defined]  # the library types them loosely


def judge(table_size: int = 0) -> hpack.Encoder:
    """A peer's encoder that was told our table size."""
    encoder = hpack.Encoder()
    encoder.header_table_size = table_size
    return encoder


def read(decoder: Callable[[bytes], bytes], coded: bytes) -> bytes | None:
    """Return what *decoder* reads; None where it refuses."""
    try:
        return decoder(coded)
    except HuffmanError:
        return None


def test_the_static_table_and_the_huffman_code_are_those_of_the_rfc() -> None:
    """Both against the library's copies of RFC 7541's appendices."""
    assert STATIC_TABLE == HeaderTable.STATIC_TABLE
    assert list(CODE_LENGTHS) == list(REQUEST_CODES_LENGTH)


@given(FIELDS)
def test_what_we_encode_the_library_reads(fields: list[tuple[bytes, bytes]]) -> None:
    """Nothing is lost or reordered, whatever the bytes."""
    decoder = hpack.Decoder(max_header_list_size=NO_LIMIT)
    assert plain(decoder.decode(encode_headers(fields), raw=True)) == fields


@given(FIELDS, FIELDS)
def test_blocks_may_be_concatenated(first: list[tuple[bytes, bytes]], second: list[tuple[bytes, bytes]]) -> None:
    """A block encoded ahead can be put before one encoded later."""
    both = encode_headers(first) + encode_headers(second)
    assert list(decode_headers(both, NO_LIMIT)) == first + second


@given(FIELDS, st.booleans())
def test_what_the_library_encodes_we_read(fields: list[tuple[bytes, bytes]], huffman: bool) -> None:
    """With and without Huffman code, and with the size update that our table size makes it send."""
    block = judge().encode(fields, huffman=huffman)
    assert list(decode_headers(block, NO_LIMIT)) == fields


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_a_fault(block: bytes) -> None:
    """A decoder fed with rubbish raises nothing else; what it reads, the library reads alike."""
    decoder = hpack.Decoder(max_header_list_size=NO_LIMIT)
    try:
        ours = list(decode_headers(block, NO_LIMIT))
    except ConnectionFault:
        return
    assert plain(decoder.decode(block, raw=True)) == ours


@given(st.lists(st.tuples(st.sampled_from([0, 100, 1600, 4096]), REPEATED, st.booleans()), max_size=6))
def test_a_table_is_kept_as_the_library_keeps_it(blocks: list[tuple[int, list[tuple[bytes, bytes]], bool]]) -> None:
    """Whatever we asked for: indexed fields, evicted ones, and every change of the table's size (RFC 7541, 4)."""
    encoder = hpack.Encoder()
    decoder = HeaderDecoder()
    for table_size, fields, huffman in blocks:
        encoder.header_table_size = table_size
        assert list(decoder.decode(encoder.encode(fields, huffman=huffman), NO_LIMIT)) == fields


def test_a_list_above_the_limit_leaves_the_table_whole() -> None:
    """The next block may refer to what came behind the limit."""
    encoder = hpack.Encoder()
    decoder = HeaderDecoder()
    fields = [(b"x-a", b"a" * 500), (b"x-b", b"b")]
    with pytest.raises(HeaderListTooLarge):
        decoder.decode(encoder.encode(fields), 100)
    assert list(decoder.decode(encoder.encode(fields), NO_LIMIT)) == fields


def test_every_symbol_has_its_huffman_code() -> None:
    """Each of the 256 at every offset of bits."""
    text = b"".join([b"0" * shift + bytes(range(256)) for shift in range(8)])
    assert decode_headers(judge().encode([(b"x-a", text)]), NO_LIMIT) == ((b"x-a", text),)


@given(PRINTED, st.integers(0, 255), st.binary(max_size=5))
def test_a_long_string_is_read_by_zlib_as_by_the_automaton(text: bytes, last: int, behind: bytes) -> None:
    """Whole, with a last byte that pads it wrongly, and with what does not belong behind it."""
    whole = HuffmanEncoder(REQUEST_CODES, list(REQUEST_CODES_LENGTH)).encode(text)
    assert decode(whole) == text
    for coded in (whole, whole[:-1], whole[:-1] + bytes([last]), whole + b"\xff", whole + behind):
        assert read(decode, coded) == read(decode_by_bytes, coded)


@given(st.binary(min_size=64, max_size=200))
def test_any_long_string_is_read_by_zlib_as_by_the_automaton(coded: bytes) -> None:
    """Most are no Huffman code."""
    assert read(decode, coded) == read(decode_by_bytes, coded)


def test_secrets_are_marked_never_to_be_indexed() -> None:
    """RFC 7541, 7.1.3: by default the credentials, otherwise what the caller names."""
    assert encode_headers([(b"authorization", b"x")])[0] & 0xF0 == 0x10
    assert encode_headers([(b"apns-id", b"x")])[0] & 0xF0 == 0
    assert encode_headers([(b"apns-id", b"x")], frozenset({b"apns-id"}))[0] & 0xF0 == 0x10


def test_a_list_above_the_limit_is_refused() -> None:
    """Name, value and 32 bytes count for each field (RFC 9113, 6.5.2)."""
    block = encode_headers([(b"a", b"b" * 67)] * 3)
    assert len(decode_headers(block, 300)) == 3
    with pytest.raises(HeaderListTooLarge):
        decode_headers(block, 299)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\xbe", id="an index of the dynamic table, which is empty"),
        pytest.param(b"\x40\x01a\x01b\xbf", id="an index behind the dynamic table"),
        pytest.param(b"\x20\x40\x01a\x01b\xbe", id="an index of the dynamic table, which has no room"),
        pytest.param(b"\x80", id="index zero"),
        pytest.param(b"\x3f\xe2\x1f", id="a size update above 4096"),
        pytest.param(b"\x88\x20", id="a size update after a field"),
        pytest.param(b"\x00\x03ab", id="a string that is cut"),
        pytest.param(b"\x00\x7f\xff\xff\xff\xff\xff\xff\x0f", id="a length without end"),
        pytest.param(b"\x04\x84\xff\xff\xff\xff", id="the end mark inside a Huffman string"),
        pytest.param(b"\x04\x81\x00", id="Huffman padding that is not ones"),
        pytest.param(b"\x04\x82\x1f\xff", id="Huffman padding of a byte and more"),
    ],
)
def test_a_broken_block_is_a_compression_error(block: bytes) -> None:
    """The connection cannot go on."""
    with pytest.raises(ConnectionFault) as raised:
        decode_headers(block, NO_LIMIT)
    assert raised.value.code == COMPRESSION_ERROR


def test_a_field_with_incremental_indexing_is_read_although_the_table_has_no_room() -> None:
    """RFC 7541, 4.4: a field larger than the table empties it, and is no error."""
    assert decode_headers(b"\x20\x40\x01a\x01b\x48\x03200", NO_LIMIT) == ((b"a", b"b"), (b":status", b"200"))


def test_the_oldest_field_leaves_the_table_when_the_newest_has_no_room() -> None:
    """RFC 7541, 4.4: an index of one that has left is a fault, and the table takes no more room than it may."""
    decoder = HeaderDecoder()
    fields = [(b"x-%d" % n, b"v" * 1000) for n in range(5)]
    for name, value in fields:
        decoder.decode(b"\x40" + bytes([len(name)]) + name + b"\x7f" + b"\xe9\x06" + value, NO_LIMIT)
    newest, oldest = 62, 64
    assert decoder.decode(bytes([0x80 | newest, 0x80 | oldest]), NO_LIMIT) == (fields[4], fields[2])
    with pytest.raises(ConnectionFault, match="outside"):
        decoder.decode(bytes([0x80 | oldest + 1]), NO_LIMIT)


def test_a_number_is_not_read_to_its_end() -> None:
    """However long it goes on: it is too large after a few bytes."""
    with pytest.raises(ConnectionFault, match="number too large"):
        decode_headers(b"\xff" + b"\xff" * 1000, NO_LIMIT)
    with pytest.raises(ConnectionFault, match="number too large"):
        decode_headers(b"\xff" + b"\x80" * 1000, NO_LIMIT)
