"""The layer between frames and requests: a gateway's rules below its requests, and what a well-formed request is."""

import msgspec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings

from waypost.lab.exchange import ClientConnection, Request
from waypost.lab.faults import SettingsChange

_CONNECTION_HEADERS = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_PSEUDO = frozenset((b":method", b":path", b":scheme", b":authority"))


class WireRules(msgspec.Struct, frozen=True):
    """The behaviour of one gateway below its requests."""

    max_streams: int
    max_streams_with_certificate: int = 1000
    """The most streams from the start, for a client whose certificate says who it is (APNs)."""
    ends_with_empty_data: bool = False
    """Whether END_STREAM comes on a DATA frame of its own, as FCM often does."""
    needs_alpn: bool = False
    max_unasked_pings: int | None = None
    """The number of PINGs without a request that gets the GOAWAY `too_many_pings`."""
    idle_s: float | None = None
    max_age_s: float | None = None


class IncomingRequest(msgspec.Struct):
    """A request whose body is still arriving, or that waits for its answer."""

    headers: list[tuple[bytes, bytes]]
    body: bytearray
    ended: bool = False
    _request: Request | None = None

    def as_request(self, connection: ClientConnection) -> Request:
        """Return it as a request, now that it is complete."""
        self._request = read_request(self.headers, bytes(self.body), connection)
        return self._request

    def give_up(self) -> None:
        """Note that its stream was reset."""
        if self._request is not None:
            self._request.given_up = True


class LenientHttp2(H2Connection):
    """The h2 library, except that the lab judges stream limit and headers itself: it resets, instead of hanging up."""

    def __init__(self, max_streams: int) -> None:
        super().__init__(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                validate_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.local_settings = Settings(client=False, initial_values={SettingCodes.MAX_CONCURRENT_STREAMS: max_streams})

    @property
    def open_inbound_streams(self) -> int:
        return -1

    def sweep(self) -> None:
        """Let h2 forget closed streams, which it does only while it counts open ones."""
        _ = super().open_inbound_streams


def setting_values(change: SettingsChange) -> dict[SettingCodes | int, int]:
    """Build the settings that a scripted change sends."""
    values = {
        SettingCodes.MAX_CONCURRENT_STREAMS: change.max_concurrent_streams,
        SettingCodes.INITIAL_WINDOW_SIZE: change.initial_window_size,
        SettingCodes.MAX_FRAME_SIZE: change.max_frame_size,
        SettingCodes.HEADER_TABLE_SIZE: change.header_table_size,
        SettingCodes.MAX_HEADER_LIST_SIZE: change.max_header_list_size,
    }
    return {code: value for code, value in values.items() if value is not None}


def read_request(raw: list[tuple[bytes, bytes]], body: bytes, connection: ClientConnection) -> Request:
    """Turn a header block and a body into a request, noting headers that came more than once."""
    headers: dict[str, str] = {}
    repeated: list[str] = []
    for raw_name, raw_value in raw:
        name = raw_name.decode("latin-1")
        if name in headers:
            repeated.append(name)
        headers[name] = raw_value.decode("latin-1")
    return Request(
        method=headers[":method"], path=headers[":path"], headers=headers, repeated=tuple(repeated), body=body,
        connection=connection,
    )  # fmt: skip


def malformed(headers: list[tuple[bytes, bytes]]) -> str:
    """Name the rule of RFC 9113 section 8.2-8.3 that a header block breaks; empty when it breaks none."""
    seen: set[bytes] = set()
    regular = False
    for name, value in headers:
        if name[:1] == b":":
            if regular or name not in _PSEUDO or name in seen:
                return "pseudo-header repeated, unknown or after a regular header"
            seen.add(name)
            continue
        regular = True
        if name != name.lower() or not name:
            return "header name not in lower case"
        if name in _CONNECTION_HEADERS or (name == b"te" and value != b"trailers"):
            return "connection-specific header"
        if value != value.strip(b" \t") or b"\n" in value or b"\r" in value or b"\0" in value:
            return "header value with a character that is not allowed"
    if not seen.issuperset((b":method", b":path", b":scheme")):
        return "pseudo-header missing"
    return ""
