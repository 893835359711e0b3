"""The head of an answer: its fields decoded and held to the rules of RFC 9113, section 8."""

from typing import Final

from .hpack import Field, HeaderListTooLarge, decode_headers

# Blocks are decoded without state, so one that was seen before is not decoded again. Bounded: emptied when full.
_REMEMBERED_BLOCKS: Final = 256
_REMEMBERED_BYTES: Final = 1024

# RFC 9113, 8.2.2: fields that belong to a connection of HTTP/1.1.
_OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
)
_NOT_IN_A_NAME: Final = frozenset(range(0x21)) | frozenset(range(0x41, 0x5B)) | frozenset(range(0x7F, 0x100))


class MalformedAnswer(Exception):
    """The answer of one stream breaks a rule; the connection goes on (RFC 9113, 8.1.1)."""


class AnswerHead:
    """Status, fields and announced body length of an answer; -1 where it announces none."""

    def __init__(self, status: int, fields: tuple[Field, ...], content_length: int) -> None:
        self.status = status
        self.fields = fields
        self.content_length = content_length


class HeadReader:
    """Reads the header blocks of one connection."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._seen: dict[bytes, AnswerHead] = {}

    def read(self, block: bytes) -> AnswerHead:
        """The head in *block*; MalformedAnswer, or ConnectionFault where the block cannot be decoded."""
        head = self._seen.get(block)
        if head is None:
            head = _head(self._decoded(block))
            if len(block) <= _REMEMBERED_BYTES:
                if len(self._seen) >= _REMEMBERED_BLOCKS:
                    self._seen.clear()
                self._seen[block] = head
        return head

    def read_trailers(self, block: bytes) -> tuple[Field, ...]:
        """The trailer fields in *block*; raises as `read` does."""
        fields = self._decoded(block)
        for name, value in fields:
            _check(name, value)
        return fields

    def _decoded(self, block: bytes) -> tuple[Field, ...]:
        try:
            return decode_headers(block, self._limit_bytes)
        except HeaderListTooLarge:
            raise MalformedAnswer(f"header list above {self._limit_bytes} bytes") from None


def _head(fields: tuple[Field, ...]) -> AnswerHead:
    if not fields or fields[0][0] != b":status":
        raise MalformedAnswer("answer without :status first")
    status = fields[0][1]
    if len(status) != 3 or not status.isdigit() or status < b"100":
        raise MalformedAnswer("status is no number of three digits")
    regular = fields[1:]
    content_length = -1
    for name, value in regular:
        _check(name, value)
        if name == b"content-length":
            if not value.isdigit() or len(value) > 15 or content_length not in (-1, int(value)):
                raise MalformedAnswer("content-length is no number, or two")
            content_length = int(value)
    return AnswerHead(int(status), regular, content_length)


def _check(name: bytes, value: bytes) -> None:
    if not name or not _NOT_IN_A_NAME.isdisjoint(name) or b":" in name:
        raise MalformedAnswer("field name that is empty, upper-case, misplaced or no name at all")
    if name in _OF_THE_CONNECTION:
        raise MalformedAnswer("connection-specific field")
    if b"\0" in value or b"\r" in value or b"\n" in value:
        raise MalformedAnswer("field value with a line break or NUL")
