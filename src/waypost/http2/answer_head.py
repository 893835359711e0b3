"""The head of an answer: its fields decoded and held to the rules of RFC 9113, section 8."""

import contextlib
import operator
from collections.abc import Callable
from typing import Final

from .hpack import Field, HeaderDecoder, HeaderListTooLarge

# A block that was seen before is not decoded again unless the dynamic table has changed. Bounded: emptied when full.
_REMEMBERED_BLOCKS: Final = 256
_REMEMBERED_BYTES: Final = 1024

# RFC 9113, 8.2.2: fields that belong to a connection of HTTP/1.1.
_OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
)
# RFC 9113, 8.2.1: control characters, space, upper case, and bytes above ASCII; the colon is for pseudo fields.
_NOT_IN_A_NAME: Final = frozenset(range(0x21)) | frozenset(range(0x41, 0x5B)) | frozenset(range(0x7F, 0x100)) | {0x3A}
# Short names that were found proper are not looked through again. Bounded: emptied when full.
_REMEMBERED_NAMES: Final = 256
_REMEMBERED_NAME_BYTES: Final = 64
_VALUE: Final[Callable[[Field], bytes]] = operator.itemgetter(1)


class MalformedAnswer(Exception):
    """The error that the answer of one stream breaks a rule; the connection goes on (RFC 9113, 8.1.1)."""


class AnswerHead:
    """The status, fields and announced body length of an answer; -1 where it announces none."""

    def __init__(self, status: int, fields: tuple[Field, ...], content_length: int) -> None:
        self.status = status
        self.fields = fields
        self.content_length = content_length


class HeadReader:
    """A reader of one connection's header blocks; none may be left out, since the next may refer to it."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._decoder = HeaderDecoder()
        self.seen: dict[bytes, AnswerHead] = {}
        self._proper_names: set[bytes] = set()

    def read(self, block: bytes) -> AnswerHead:
        """Read the head in *block*; MalformedAnswer, or ConnectionFault where the block cannot be decoded."""
        head = self.seen.get(block)
        if head is None:
            changes = self._decoder.changes
            head = self._head(self._decoded(block))
            if self._decoder.changes == changes and len(block) <= _REMEMBERED_BYTES:
                if len(self.seen) >= _REMEMBERED_BLOCKS:
                    self.seen.clear()
                self.seen[block] = head
        return head

    def read_trailers(self, block: bytes) -> tuple[Field, ...]:
        """Read the trailer fields in *block*; raises as `read` does."""
        fields = self._decoded(block)
        self._content_length(fields)
        return fields

    def pass_over(self, block: bytes) -> None:
        """Apply what *block* does to the table, for an answer that nobody waits for."""
        if block not in self.seen:
            with contextlib.suppress(MalformedAnswer):
                self._decoded(block)

    def _decoded(self, block: bytes) -> tuple[Field, ...]:
        changes = self._decoder.changes
        try:
            return self._decoder.decode(block, self._limit_bytes)
        except HeaderListTooLarge:
            raise MalformedAnswer(f"header list above {self._limit_bytes} bytes") from None
        finally:
            if self._decoder.changes != changes:
                self.seen.clear()

    def _head(self, fields: tuple[Field, ...]) -> AnswerHead:
        if not fields or fields[0][0] != b":status":
            raise MalformedAnswer("answer without :status first")
        status = fields[0][1]
        if len(status) != 3 or not status.isdigit() or status < b"100":
            raise MalformedAnswer("status is no number of three digits")
        regular = fields[1:]
        return AnswerHead(int(status), regular, self._content_length(regular))

    def _content_length(self, fields: tuple[Field, ...]) -> int:
        """Check each field, and return the body length that *fields* announce, or -1."""
        values = b"".join(map(_VALUE, fields))
        if b"\0" in values or b"\r" in values or b"\n" in values:
            raise MalformedAnswer("field value with a line break or NUL")
        announced = -1
        for name, value in fields:
            if name not in self._proper_names:
                self._check_name(name)
            if name == b"content-length":
                if not value.isdigit() or len(value) > 15 or announced not in (-1, int(value)):
                    raise MalformedAnswer("content-length is no number, or two")
                announced = int(value)
        return announced

    def _check_name(self, name: bytes) -> None:
        if not name or not _NOT_IN_A_NAME.isdisjoint(name):
            raise MalformedAnswer("field name that is empty, upper-case, misplaced or no name at all")
        if name in _OF_THE_CONNECTION:
            raise MalformedAnswer("connection-specific field")
        if len(name) <= _REMEMBERED_NAME_BYTES:
            if len(self._proper_names) >= _REMEMBERED_NAMES:
                self._proper_names.clear()
            self._proper_names.add(name)
