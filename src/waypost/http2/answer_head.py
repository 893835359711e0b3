"""The head of an answer: its fields decoded and held to the rules of RFC 9113, section 8."""

import contextlib
import operator
from collections.abc import Callable
from typing import Final

from .hpack import FIELD_OVERHEAD, Field, HeaderDecoder, HeaderListTooLarge, value_places
from .huffman import HuffmanError
from .huffman import decode as huffman_decode

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
# Blocks in a row of which no form could be told: then it is not looked for any more, until a known one comes.
_MOST_MISSES: Final = 16
_STATUS_BYTES: Final = len(b":status") + 3 + FIELD_OVERHEAD
_VALUE: Final[Callable[[Field], bytes]] = operator.itemgetter(1)


class MalformedAnswer(Exception):
    """The error that the answer of one stream breaks a rule; the connection goes on (RFC 9113, 8.1.1)."""


class AnswerHead:
    """The status, fields and announced body length of an answer; -1 where it announces none."""

    def __init__(self, status: int, fields: tuple[Field, ...], content_length: int) -> None:
        self.status = status
        self.fields = fields
        self.content_length = content_length


class _Form:
    """The form of a block in which one value differs from answer to answer: an id that the server gives each."""

    def __init__(self, before: bytes, after: bytes, place: int, head: AnswerHead, room: int) -> None:
        self.before = before
        self.after = after
        self.around = len(before) + 1 + len(after)
        self.name = head.fields[place][0]
        self.first = head.fields[:place]
        self.last = head.fields[place + 1 :]
        self.status = head.status
        self.content_length = head.content_length
        self.room = room  # the longest value with which the list is within the limit


class HeadReader:
    """A reader of one connection's header blocks; none may be left out, since the next may refer to it."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._decoder = HeaderDecoder()
        self.seen: dict[bytes, AnswerHead] = {}
        self._proper_names: set[bytes] = set()
        # By the first byte of a block, which says the status: the form, the last block that had none, and how many
        # in a row could not be told from such a one.
        self._forms: dict[int, _Form] = {}
        self._formless: dict[int, bytes] = {}
        self._misses = 0

    def read(self, block: bytes) -> AnswerHead:
        """Read the head in *block*; MalformedAnswer, or ConnectionFault where the block cannot be decoded."""
        head = self.seen.get(block) or self.alike(block)
        if head is None:
            changes = self._decoder.changes
            head = self._head(self._decoded(block))
            if self._decoder.changes == changes and len(block) <= _REMEMBERED_BYTES:
                if len(self.seen) >= _REMEMBERED_BLOCKS:
                    self.seen.clear()
                self.seen[block] = head
                if self._misses < _MOST_MISSES:
                    self._learn(block, head)
        return head

    def alike(self, block: bytes) -> AnswerHead | None:
        """Read the head in a block of a known form; None where it has none, or breaks a rule."""
        form = self._forms.get(block[0]) if block else None
        if form is None or not block.startswith(form.before) or not block.endswith(form.after):
            return None
        at = len(form.before)
        length = len(block) - form.around
        if length < 0 or block[at] & 0x7F != length or length == 0x7F:
            return None
        value = block[at + 1 : at + 1 + length]
        if block[at] >= 0x80:
            try:
                value = huffman_decode(value)
            except HuffmanError:
                return None
        if len(value) > form.room or b"\0" in value or b"\r" in value or b"\n" in value:
            return None
        self._misses = 0
        return AnswerHead(form.status, (*form.first, (form.name, value), *form.last), form.content_length)

    def _learn(self, block: bytes, head: AnswerHead) -> None:
        """Compare *block*, which changed no table, with the last one of its status: what is the value that differs?"""
        last = self._formless.get(block[0], b"")
        self._formless[block[0]] = block
        if not last:
            return
        self._misses += 1
        same = 0
        while same < min(len(last), len(block)) and last[same] == block[same]:
            same += 1
        for place, begin, end in value_places(block, is_kept=self._decoder.keeps_fields):
            if begin <= same < end and place > 0 and head.fields[place - 1][0] != b"content-length":
                size = sum([len(name) + len(value) + FIELD_OVERHEAD for name, value in head.fields])
                room = self._limit_bytes - size - _STATUS_BYTES + len(head.fields[place - 1][1])
                self._forms[block[0]] = _Form(block[:begin], block[end:], place - 1, head, room)
                return

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
                self._forms.clear()
                self._formless.clear()

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
