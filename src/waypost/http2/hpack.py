"""Header compression without state (RFC 7541): the static table, literals, Huffman strings, size updates.

We advertise SETTINGS_HEADER_TABLE_SIZE 0 before anything is asked, so an answer's block can refer to the static table
alone, and a block means the same whenever and wherever it is read. What we send uses the static table alone, too:
blocks can be encoded ahead, stored, and concatenated.
"""

from collections.abc import Iterable
from typing import Final

from .frames import COMPRESSION_ERROR, ConnectionFault
from .huffman import HuffmanError
from .huffman import decode as huffman_decode

Field = tuple[bytes, bytes]

# RFC 7541 appendix A; a name is followed by its values, in the order of the index.
STATIC_TABLE: Final[tuple[Field, ...]] = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    *[
        (name, b"")
        for name in (
            b"accept-language accept-ranges accept access-control-allow-origin age allow authorization "
            b"cache-control content-disposition content-encoding content-language content-length "
            b"content-location content-range content-type cookie date etag expect expires from host if-match "
            b"if-modified-since if-none-match if-range if-unmodified-since last-modified link location "
            b"max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server "
            b"set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate"
        ).split()
    ],
)

# Read backwards so that of equal names the first index stays.
_INDEX_OF_NAME: Final[dict[bytes, int]] = {
    field[0]: index for index, field in reversed(list(enumerate(STATIC_TABLE, start=1)))
}
_INDEX_OF_FIELD: Final[dict[Field, int]] = {field: index for index, field in enumerate(STATIC_TABLE, start=1)}

NEVER_INDEXED: Final = frozenset({b"authorization", b"proxy-authorization", b"cookie"})

# Emitted once before the first block of a connection: our dynamic table has no room (RFC 7541, 4.2).
TABLE_SIZE_ZERO: Final = b"\x20"

# A number above this is no length or index of an honest peer.
_LARGEST_NUMBER: Final = 1 << 24
# What RFC 9113, 6.5.2 counts for each field beside its bytes.
_FIELD_OVERHEAD: Final = 32


class HeaderListTooLarge(Exception):
    """The decoded fields are larger than what we advertised (SETTINGS_MAX_HEADER_LIST_SIZE)."""


def encode_headers(fields: Iterable[Field], never_index: frozenset[bytes] = NEVER_INDEXED) -> bytes:
    """A header block that any receiver can read without earlier blocks.

    Blocks may be concatenated; pseudo fields first is the caller's duty, and so are lower-case names. Values whose
    names are in *never_index* are marked so that no intermediary puts them in a table (RFC 7541, 7.1.3).
    """
    block = bytearray()
    for name, value in fields:
        secret = name in never_index
        index = 0 if secret else _INDEX_OF_FIELD.get((name, value), 0)
        if index:
            _put_number(block, index, 7, 0x80)
            continue
        index = _INDEX_OF_NAME.get(name, 0)
        _put_number(block, index, 4, 0x10 if secret else 0)
        if not index:
            _put_string(block, name)
        _put_string(block, value)
    return bytes(block)


def _put_number(block: bytearray, number: int, prefix_bits: int, pattern: int) -> None:
    largest = (1 << prefix_bits) - 1
    if number < largest:
        block.append(pattern | number)
        return
    block.append(pattern | largest)
    number -= largest
    while number >= 0x80:
        block.append(number & 0x7F | 0x80)
        number >>= 7
    block.append(number)


def _put_string(block: bytearray, text: bytes) -> None:
    _put_number(block, len(text), 7, 0)
    block += text


class _Reader:
    """A position in one header block."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.at = 0

    def number(self, prefix_bits: int) -> int:
        largest = (1 << prefix_bits) - 1
        number = self.block[self.at] & largest
        self.at += 1
        if number < largest:
            return number
        shift = 0
        while True:
            byte = self.block[self.at]
            self.at += 1
            number += (byte & 0x7F) << shift
            if number > _LARGEST_NUMBER or shift > 28:
                raise ConnectionFault(COMPRESSION_ERROR, "number too large in a header block")
            if byte < 0x80:
                return number
            shift += 7

    def string(self) -> bytes:
        coded = self.block[self.at] >= 0x80
        length = self.number(7)
        end = self.at + length
        if end > len(self.block):
            raise IndexError
        text = self.block[self.at : end]
        self.at = end
        return huffman_decode(text) if coded else text


def decode_headers(block: bytes, limit_bytes: int) -> tuple[Field, ...]:
    """The fields of a whole header block.

    Raises HeaderListTooLarge above *limit_bytes* (RFC 9113, 6.5.2), ConnectionFault(COMPRESSION_ERROR) if it is no
    block, or one that needs a dynamic table.
    """
    try:
        return _decode(_Reader(block), limit_bytes)
    except IndexError:
        raise ConnectionFault(COMPRESSION_ERROR, "header block ends inside a field") from None
    except HuffmanError as error:
        raise ConnectionFault(COMPRESSION_ERROR, f"header string: {error}") from None


def _decode(reader: _Reader, limit_bytes: int) -> tuple[Field, ...]:
    fields: list[Field] = []
    size = 0
    block = reader.block
    end = len(block)
    while reader.at < end:
        first = block[reader.at]
        if first >= 0x80:
            field = _static(reader.number(7))
        elif first & 0xE0 == 0x20:
            if fields or reader.number(5):
                raise ConnectionFault(COMPRESSION_ERROR, "dynamic table size update out of place or above zero")
            continue
        else:
            # With incremental indexing (6 bits) the field goes to a table of no size: it is only read.
            index = reader.number(6 if first & 0x40 else 4)
            name = _static(index)[0] if index else reader.string()
            field = (name, reader.string())
        size += len(field[0]) + len(field[1]) + _FIELD_OVERHEAD
        if size > limit_bytes:
            raise HeaderListTooLarge
        fields.append(field)
    return tuple(fields)


def _static(index: int) -> Field:
    if not 0 < index <= len(STATIC_TABLE):
        raise ConnectionFault(COMPRESSION_ERROR, "index outside the static table")
    return STATIC_TABLE[index - 1]
