"""Header compression (RFC 7541): blocks are written without state, and read with all of it.

What we send uses the static table alone: blocks can be encoded ahead, stored, and concatenated. We advertise
SETTINGS_HEADER_TABLE_SIZE 0, and most servers then answer so, too. Some index all the same (h2o 2.2), so the dynamic
table is kept as if nothing had been advertised.
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

_STATIC_FIELDS: Final = len(STATIC_TABLE)
# Read backwards so that of equal names the first index stays.
_INDEX_OF_NAME: Final[dict[bytes, int]] = {
    field[0]: index for index, field in reversed(list(enumerate(STATIC_TABLE, start=1)))
}
_INDEX_OF_FIELD: Final[dict[Field, int]] = {field: index for index, field in enumerate(STATIC_TABLE, start=1)}

NEVER_INDEXED: Final = frozenset({b"authorization", b"proxy-authorization", b"cookie"})

# Emitted once before the first block of a connection: our dynamic table has no room (RFC 7541, 4.2).
TABLE_SIZE_ZERO: Final = b"\x20"

# SETTINGS_HEADER_TABLE_SIZE as it is where nobody says otherwise (RFC 9113, 6.5.2).
LARGEST_TABLE_BYTES: Final = 4096
# A Huffman string that came before is not decoded again: names, and values that do not change. Emptied when full.
_REMEMBERED_TEXTS: Final = 128
_REMEMBERED_TEXT_BYTES: Final = 128

# A number above this is no length or index of an honest peer.
_LARGEST_NUMBER: Final = 1 << 24
# What is counted for each field beside its bytes, in a list (RFC 9113, 6.5.2) and in a table (RFC 7541, 4.1).
FIELD_OVERHEAD: Final = 32


class HeaderListTooLarge(Exception):
    """The error that the decoded fields are larger than we advertised (SETTINGS_MAX_HEADER_LIST_SIZE)."""


def encode_headers(fields: Iterable[Field], never_index: frozenset[bytes] = NEVER_INDEXED) -> bytes:
    """Encode a header block that any receiver can read without earlier blocks.

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


class HeaderDecoder:
    """A decoder of one connection's header blocks, all of them and in their order: one may refer to those before it."""

    def __init__(self) -> None:
        self.changes = 0
        """The number of blocks that changed the table; one that did not means the same until the next change."""
        self._table: list[Field] = []  # the newest last
        self._table_bytes = 0
        self._most_table_bytes = LARGEST_TABLE_BYTES
        self._texts: dict[bytes, bytes] = {}

    @property
    def keeps_fields(self) -> bool:
        """Whether a field may enter the table."""
        return self._most_table_bytes > 0

    def decode(self, block: bytes, limit_bytes: int) -> tuple[Field, ...]:
        """Decode the fields of a whole header block.

        Raises HeaderListTooLarge above *limit_bytes* (RFC 9113, 6.5.2), when all of the block has been taken in;
        ConnectionFault(COMPRESSION_ERROR) if it is no block, or refers to what is in no table.
        """
        fields: list[Field] = []
        size = 0
        at = 0
        end = len(block)
        try:
            while at < end:
                first = block[at]
                if first >= 0x80:
                    index, at = _number(block, at, 0x7F)
                    field = STATIC_TABLE[index - 1] if 0 < index <= _STATIC_FIELDS else self._indexed(index)
                elif first & 0xE0 == 0x20:
                    at = self._size_update(block, at, first_of_block=not size)
                    continue
                else:
                    field, at = self._literal(block, at)
                    if first & 0x40 and self._most_table_bytes:
                        self._add(field)
                size += len(field[0]) + len(field[1]) + FIELD_OVERHEAD
                if size <= limit_bytes:
                    fields.append(field)
        except IndexError:
            raise ConnectionFault(COMPRESSION_ERROR, "header block ends inside a field") from None
        except HuffmanError as error:
            raise ConnectionFault(COMPRESSION_ERROR, f"header string: {error}") from None
        if size > limit_bytes:
            raise HeaderListTooLarge
        return tuple(fields)

    def _literal(self, block: bytes, at: int) -> tuple[Field, int]:
        """Read the literal field at *at* (6.2), and where it ends."""
        mask = 0x3F if block[at] & 0x40 else 0x0F
        index = block[at] & mask
        if index < mask:  # as in `_number`, without the call: most are small
            at += 1
        else:
            index, at = _number(block, at, mask)
        if index:
            name = self._indexed(index)[0]
        else:
            name, at = self._text(block, at)
        value, at = self._text(block, at)
        return (name, value), at

    def _size_update(self, block: bytes, at: int, *, first_of_block: bool) -> int:
        """Give the table another size (4.2, 4.3, 6.3); return where the update ends."""
        most_bytes, at = _number(block, at, 0x1F)
        if most_bytes > LARGEST_TABLE_BYTES or not first_of_block:
            raise ConnectionFault(COMPRESSION_ERROR, "dynamic table size update out of place or too large")
        if most_bytes != self._most_table_bytes:
            self._most_table_bytes = most_bytes
            self.changes += 1
            self._shrink(most_bytes)
        return at

    def _indexed(self, index: int) -> Field:
        if 0 < index <= _STATIC_FIELDS:
            return STATIC_TABLE[index - 1]
        age = index - _STATIC_FIELDS
        if not 0 < age <= len(self._table):
            raise ConnectionFault(COMPRESSION_ERROR, "index outside the static and the dynamic table")
        return self._table[-age]

    def _text(self, block: bytes, at: int) -> tuple[bytes, int]:
        """Read the string at *at*, and where it ends."""
        coded = block[at] >= 0x80
        length = block[at] & 0x7F
        if length < 0x7F:  # as above
            at += 1
        else:
            length, at = _number(block, at, 0x7F)
        end = at + length
        if end > len(block):
            raise IndexError
        text = block[at:end]
        if not coded:
            return text, end
        known = self._texts.get(text)
        if known is None:
            known = huffman_decode(text)
            if length <= _REMEMBERED_TEXT_BYTES:
                if len(self._texts) >= _REMEMBERED_TEXTS:
                    self._texts.clear()
                self._texts[text] = known
        return known, end

    def _add(self, field: Field) -> None:
        """Put a field into the table, for which the oldest leave; one larger than the table just empties it (4.4)."""
        size = len(field[0]) + len(field[1]) + FIELD_OVERHEAD
        self._shrink(self._most_table_bytes - size)
        if size <= self._most_table_bytes:
            self._table.append(field)
            self._table_bytes += size
            self.changes += 1

    def _shrink(self, most_bytes: int) -> None:
        while self._table and self._table_bytes > most_bytes:
            name, value = self._table.pop(0)
            self._table_bytes -= len(name) + len(value) + FIELD_OVERHEAD
            self.changes += 1


def decode_headers(block: bytes, limit_bytes: int) -> tuple[Field, ...]:
    """Decode the first header block of a connection; raises as `HeaderDecoder.decode` does."""
    return HeaderDecoder().decode(block, limit_bytes)


def value_places(block: bytes, *, is_kept: bool) -> list[tuple[int, int, int]]:
    """Find the values that are spelled out in a well-formed *block*: their fields' numbers, where they begin and end.

    Values with lengths of more than a byte are left out, and where the table *is_kept* those that may enter it.
    """
    places: list[tuple[int, int, int]] = []
    field = at = 0
    while at < len(block):
        first = block[at]
        if first >= 0x80:
            _, at = _number(block, at, 0x7F)
        elif first & 0xE0 == 0x20:
            _, at = _number(block, at, 0x1F)
            continue
        else:
            index, at = _number(block, at, 0x3F if first & 0x40 else 0x0F)
            if not index:
                length, at = _number(block, at, 0x7F)
                at += length
            begin = at
            length, at = _number(block, at, 0x7F)
            if at == begin + 1 and not (is_kept and first & 0x40):
                places.append((field, begin, at + length))
            at += length
        field += 1
    return places


def _number(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """Read the number whose first bits are those of *mask* at *at*, and where it ends (5.1)."""
    number = block[at] & mask
    at += 1
    if number < mask:
        return number, at
    shift = 0
    while True:
        byte = block[at]
        at += 1
        number += (byte & 0x7F) << shift
        if number > _LARGEST_NUMBER or shift > 28:
            raise ConnectionFault(COMPRESSION_ERROR, "number too large in a header block")
        if byte < 0x80:
            return number, at
        shift += 7
