"""Frame layout, numbers and names of HTTP/2 (RFC 9113, sections 4, 6, 7 and 11)."""

from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
INTERNAL_ERROR: Final = 2
FLOW_CONTROL_ERROR: Final = 3
STREAM_CLOSED: Final = 5
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9
ENHANCE_YOUR_CALM: Final = 11

ERROR_NAMES: Final = (
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
)

HEADER_BYTES: Final = 9
DEFAULT_WINDOW: Final = 65_535
DEFAULT_FRAME_SIZE: Final = 16_384
LARGEST_FRAME_SIZE: Final = 16_777_215
LARGEST_WINDOW: Final = 2_147_483_647
LARGEST_STREAM_ID: Final = 2_147_483_647

# Length is 24 bits on the wire: it is packed together with the kind, the 8 bits after it.
HEADER: Final = Struct(">LBL")
_U32: Final = Struct(">L")
_SETTING: Final = Struct(">HL")


class ConnectionFault(Exception):
    """The error that the peer broke the protocol so that the whole connection must end (RFC 9113, 5.4.1)."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def error_name(code: int) -> str:
    """Return the RFC's name of an error code, or its number where the RFC has none."""
    return ERROR_NAMES[code] if code < len(ERROR_NAMES) else f"error {code:#x}"


def frame_header(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    """Pack the nine bytes before a payload of *length*."""
    return HEADER.pack(length << 8 | kind, flags, stream_id)


def settings(values: list[tuple[int, int]]) -> bytes:
    """Build a SETTINGS frame."""
    payload = b"".join([_SETTING.pack(name, value) for name, value in values])
    return frame_header(len(payload), SETTINGS, 0, 0) + payload


SETTINGS_ACK: Final = frame_header(0, SETTINGS, ACK, 0)


def settings_of(payload: bytes) -> list[tuple[int, int]]:
    """Read the values of a SETTINGS payload, in the order sent; FRAME_SIZE_ERROR unless whole entries."""
    if len(payload) % 6:
        raise ConnectionFault(FRAME_SIZE_ERROR, "SETTINGS of a broken length")
    return [(name, value) for name, value in _SETTING.iter_unpack(payload)]


def window_update(stream_id: int, increment: int) -> bytes:
    """Build a WINDOW_UPDATE frame."""
    return frame_header(4, WINDOW_UPDATE, 0, stream_id) + _U32.pack(increment)


def rst_stream(stream_id: int, code: int) -> bytes:
    """Build a RST_STREAM frame."""
    return frame_header(4, RST_STREAM, 0, stream_id) + _U32.pack(code)


def ping(opaque: bytes, flags: int = 0) -> bytes:
    """Build a PING frame (or its answer, with ACK) around eight opaque bytes."""
    return frame_header(8, PING, flags, 0) + opaque


def goaway(last_stream_id: int, code: int, debug: bytes = b"") -> bytes:
    """Build a GOAWAY frame."""
    payload = _U32.pack(last_stream_id) + _U32.pack(code) + debug
    return frame_header(len(payload), GOAWAY, 0, 0) + payload


def u32(payload: bytes, offset: int = 0) -> int:
    """Read an unsigned 32-bit number at *offset*."""
    value: int = _U32.unpack_from(payload, offset)[0]
    return value


def unpadded(payload: bytes, flags: int) -> bytes:
    """Remove the padding of a DATA or HEADERS payload (RFC 9113, 6.1); PROTOCOL_ERROR if its length is impossible."""
    if not flags & PADDED:
        return payload
    if not payload:
        raise ConnectionFault(FRAME_SIZE_ERROR, "padded frame without a pad length")
    padding = payload[0]
    if padding >= len(payload):
        raise ConnectionFault(PROTOCOL_ERROR, "padding longer than the frame")
    return payload[1 : len(payload) - padding]
