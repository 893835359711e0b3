"""The API over TLS: who gets in, and certificates that change while it serves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from asyncio import constants
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.adapters.rest.service import Service
from tests.certificates import Authority
from waypost.client import AsyncClient, Client, ConnectionLost
from waypost.domain.errors import ConfigurationError
from waypost.entrypoints.rest import serving as module
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings
from waypost.runtime.listening import TlsSettings
from waypost.runtime.tls import ServerTls

pytestmark = pytest.mark.asyncio


class Place:
    """Files of a server and of the authorities it and its clients have theirs from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers, self.clients = Authority(folder, "servers"), Authority(folder, "clients")
        certificate, key = self.servers.issue("server")
        self.settings = TlsSettings(certificate_file=str(certificate), key_file=str(key))
        self.mutual = TlsSettings(
            certificate_file=str(certificate), key_file=str(key), client_ca_file=str(self.clients.file)
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@contextlib.asynccontextmanager
async def serving(tls: ServerTls) -> AsyncIterator[int]:
    """The API behind *tls*; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        server = ApiServer(Service().app, listener, serve_options(RestSettings(), tls.context))
        await server.start()
        try:
            yield listener.getsockname()[1]
        finally:
            await server.stop()


def trusting(authority: Authority, own: Path | None = None) -> ssl.SSLContext:
    """A client's side."""
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(own)
    return context


class Connection:
    """One client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def server(self) -> str:
        """The name in the certificate that was shown."""
        subject = self._writer.get_extra_info("peercert")["subject"]
        return str(dict(part[0] for part in subject)["commonName"])

    async def ask(self) -> bytes:
        """The status line of an answer."""
        self._writer.write(b"GET /health/live HTTP/1.1\r\nhost: here\r\n\r\n")
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await self._reader.readexactly(int(length.partition(b":")[2]))
        return head.partition(b"\r\n")[0]


@contextlib.asynccontextmanager
async def connected(port: int, context: ssl.SSLContext) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def refused(port: int, context: ssl.SSLContext) -> None:
    """With TLS 1.3 a client hears of it with the first answer, not before."""
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        async with connected(port, context) as connection:
            await connection.ask()


async def test_a_client_that_trusts_the_authority_gets_in_and_another_does_not(place: Place) -> None:
    async with serving(ServerTls("rest.tls", place.settings)) as port:
        async with connected(port, trusting(place.servers)) as connection:
            assert await connection.ask() == b"HTTP/1.1 200 OK"
        with pytest.raises(ssl.SSLCertVerificationError):
            async with connected(port, trusting(place.clients)):
                pass


async def test_only_a_client_of_the_authority_gets_in(place: Place) -> None:
    """None, one of somebody else's, one that has ended, and the right one."""
    right, _ = place.clients.issue("caller")
    over, _ = place.clients.issue("late", days=-2)
    foreign, _ = place.servers.issue("stranger")
    async with serving(ServerTls("rest.tls", place.mutual)) as port:
        for own in (None, over, foreign):
            await refused(port, trusting(place.servers, own))
        async with connected(port, trusting(place.servers, right)) as connection:
            assert await connection.ask() == b"HTTP/1.1 200 OK"


async def test_a_server_that_stops_does_not_wait_for_an_idle_client_that_reads_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that keeps connections without looking at them never answers the end of TLS."""
    monkeypatch.setattr(module, "END_OF_TLS_S", 0.05)
    monkeypatch.setattr(constants, "SSL_SHUTDOWN_TIMEOUT", 3_600.0)
    with contextlib.ExitStack() as open_to_the_end:
        async with serving(ServerTls("rest.tls", place.settings)) as port:
            client = await asyncio.to_thread(asked_once, port, trusting(place.servers))
            open_to_the_end.enter_context(client)


def asked_once(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection that nobody reads from after its first answer."""
    plain = socket.create_connection(("127.0.0.1", port))
    client = context.wrap_socket(plain, server_hostname="localhost")
    client.sendall(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert client.recv(4_096).startswith(b"HTTP/1.1 200 OK")
    return client


async def test_tls_older_than_1_2_is_refused(place: Place) -> None:
    """By openssl's own client, allowed anything."""
    async with serving(ServerTls("rest.tls", place.settings)) as port:
        for version, taken in (("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
            command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", version]
            command += ["-cipher", "ALL:@SECLEVEL=0", "-CAfile", str(place.servers.file), "-verify_return_error"]
            run = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            _, errors = await run.communicate()
            assert (run.returncode == 0) is taken, (version, errors)


async def test_a_new_certificate_is_shown_to_new_connections_while_old_ones_go_on(place: Place) -> None:
    tls = ServerTls("rest.tls", place.settings)
    async with serving(tls) as port, connected(port, trusting(place.servers)) as before:
        assert await before.ask() == b"HTTP/1.1 200 OK"
        for new, old in zip(place.servers.issue("renewed"), tls.made_of()[1], strict=True):
            os.replace(new, old)
        await tls.reload()
        async with connected(port, trusting(place.servers)) as after:
            assert (before.server, after.server) == ("server", "renewed")
            assert await after.ask() == await before.ask() == b"HTTP/1.1 200 OK"


async def test_clients_of_an_authority_that_was_taken_away_stay_out(place: Place) -> None:
    """Also with a session of before, in which nothing would be verified again."""
    own, _ = place.clients.issue("caller")
    tls = ServerTls("rest.tls", place.mutual)
    context = trusting(place.servers, own)

    def resumed(session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None]:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as made,
        ):
            made.sendall(b"GET /health/live HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                return made.recv(12), made.session
            return b"", None

    async with serving(tls) as port:
        answer, session = await asyncio.to_thread(resumed, None)
        assert answer == b"HTTP/1.1 200"
        place.clients.file.write_bytes(Authority(place.folder, "others").file.read_bytes())
        await tls.reload()
        answer, _ = await asyncio.to_thread(resumed, session)
        assert not answer


@pytest.mark.parametrize("broken", ["missing", "no certificate", "another's key", "no key"])
async def test_a_broken_file_is_refused_by_its_setting_and_what_was_stays(place: Place, broken: str) -> None:
    tls = ServerTls("rest.tls", place.settings)
    certificate, key = map(Path, tls.made_of()[1])
    wrong = {"missing": certificate, "no certificate": certificate, "another's key": key, "no key": key}[broken]
    match broken:
        case "missing":
            certificate.unlink()
        case "another's key":
            key.write_bytes(place.servers.issue("other")[1].read_bytes())
        case _:
            wrong.write_text("-----BEGIN NONSENSE-----")
    with pytest.raises(ConfigurationError) as refusal:
        await tls.reload()
    assert ("key_file" if wrong is key else "certificate_file") in str(refusal.value)
    assert "NONSENSE" not in str(refusal.value)
    async with serving(tls) as port, connected(port, trusting(place.servers)) as connection:
        assert connection.server == "server"


async def test_our_clients_speak_tls_and_show_a_certificate(place: Place) -> None:
    own, _ = place.clients.issue("caller")
    async with serving(ServerTls("rest.tls", place.mutual)) as port:
        url = f"https://localhost:{port}"
        with Client(url, None, retry_s=0, ca_file=place.servers.file, certificate_file=own) as made:
            assert await asyncio.to_thread(made.ready)
        async with AsyncClient(url, None, retry_s=0, ca_file=place.servers.file, certificate_file=own) as other:
            assert await other.ready()
        bare = Client(url, None, retry_s=0, ca_file=place.servers.file)
        with pytest.raises(ConnectionLost):
            await asyncio.to_thread(bare.ready)


async def test_what_is_held_of_the_key_is_not_shown(place: Place) -> None:
    tls = ServerTls("rest.tls", place.settings)
    assert "PRIVATE" not in f"{tls.shown!r}{tls!r}"
