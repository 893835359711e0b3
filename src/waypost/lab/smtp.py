"""SMTP as a submission server speaks it (RFC 5321, 6409, STARTTLS, AUTH), strict on lines, order and syntax."""

import asyncio
import base64
import binascii
import re
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from waypost.lab.exchange import ClientConnection, Gateway, Request
from waypost.lab.faults import BlackHole
from waypost.lab.reception import Reception, Reply

SIZE_LIMIT = 10 * 1024 * 1024
_COMMAND_BYTES, _LONG_BYTES = 512, 12_288
"""The longest line of a command, and of AUTH, with its line end (RFC 5321, 4.5.3.1.4; RFC 4954, 4)."""
_PATH = re.compile(r"(?:FROM|TO):<([^<>\s]*)>((?: [!-~]+)*)", re.IGNORECASE)
_MAILBOX = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
_DOMAIN = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f.:]+\]")
_XOAUTH2_ERROR = base64.b64encode(b'{"status":"400","schemes":"Bearer"}').decode()


class MailServer(Protocol):
    """The parts of a gateway that a session asks."""

    strict: bool
    deaths: dict[str, int]

    def admits(self, username: str, password: str | None = None, token: str | None = None) -> bool:
        """Tell whether a login is right."""


class SmtpConnection(asyncio.Protocol):
    """A session of one client."""

    def __init__(self, gateway: Gateway, reception: Reception, tls: ssl.SSLContext) -> None:
        self._server = cast(MailServer, gateway)
        self._reception, self._tls = reception, tls
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._connection: ClientConnection | None = None
        self._buffer = b""
        self._busy = False
        """Whether an answer is still to come, so that nothing more is read."""
        self._reading: Callable[[str], None] | None = None
        """What the next line is for, where it is no command."""
        self._encrypted = self._greeted = self._signed_in = False
        self._forget()

    def _forget(self) -> None:
        self._sender: str | None = None
        self._recipient: str | None = None
        self._in_data = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet, unless this is the same connection, encrypted now."""
        self._transport = cast(asyncio.Transport, transport)
        self._encrypted = transport.get_extra_info("ssl_object") is not None
        if self._connection is None:
            scheme = "smtps" if self._encrypted else "smtp"
            self._connection = self._reception.connect("smtp", scheme=scheme)
            self._say("220 lab.example ESMTP")

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the client is gone."""
        if self._connection is not None:
            self._reception.disconnect(self._connection)

    def data_received(self, data: bytes) -> None:
        """Take lines, and messages up to their last dot."""
        self._buffer += data
        while not self._busy and not self._transport.is_closing():
            if not (self._take_message() if self._in_data else self._take_line()):
                return

    def _take_line(self) -> bool:
        line, end, rest = self._buffer.partition(b"\n")
        limit = _LONG_BYTES if line[:4].upper() == b"AUTH" or self._reading else _COMMAND_BYTES
        if len(line) + 1 > limit:
            self._buffer = b""
            self._say("500 5.5.6 line too long")
            self._transport.close()
            return False
        if not end:
            return False
        self._buffer = rest
        if not line.endswith(b"\r") or not line.isascii():
            self._violation("line end" if line.isascii() else "not ASCII")
            self._say("500 5.5.2 lines are ASCII and end with CR LF")
            return True
        if rest and not self._reading:
            self._violation("pipelining")  # it is not offered
        text = line[:-1].decode("ascii")
        if self._reading is not None:
            reading, self._reading = self._reading, None
            reading(text)
        else:
            self._command(text)
        return True

    def _command(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        known = _COMMANDS.get(name.upper())
        if known is None:
            self._say("502 5.5.1 no such command")
        elif not self._greeted and name.upper() not in {"EHLO", "HELO", "QUIT", "NOOP", "RSET"}:
            self._say("503 5.5.1 EHLO first")
        else:
            known(self, argument)

    def _ehlo(self, argument: str) -> None:
        if not _DOMAIN.fullmatch(argument):
            self._say("501 5.5.4 EHLO needs a domain or an address in brackets")
            return
        self._greeted = True
        self._forget()
        offers = ["lab.example", f"SIZE {SIZE_LIMIT}", "8BITMIME", "ENHANCEDSTATUSCODES"]
        offers += ["AUTH PLAIN LOGIN XOAUTH2"] if self._encrypted or not self._server.strict else []
        offers += [] if self._encrypted else ["STARTTLS"]
        self._say("\r\n".join([*(f"250-{offer}" for offer in offers[:-1]), f"250 {offers[-1]}"]))

    def _helo(self, _argument: str) -> None:
        self._greeted = True
        self._forget()
        self._say("250 lab.example")

    def _starttls(self, argument: str) -> None:
        if self._encrypted or argument:
            self._say("503 5.5.1 TLS is on" if self._encrypted else "501 5.5.4 STARTTLS takes nothing")
            return
        if self._reception.faults.fails_tls(self._reception.gateway.name):
            self._say("454 4.7.0 TLS is not available")
            return
        self._transport.pause_reading()  # what comes now is TLS's
        self._say("220 2.0.0 go ahead")
        self._busy, self._buffer = True, b""
        self._greeted = self._signed_in = False
        self._upgrading = self._loop.create_task(self._upgrade())

    async def _upgrade(self) -> None:
        try:
            made = await self._loop.start_tls(self._transport, self, self._tls, server_side=True)
        except (OSError, ssl.SSLError):
            return  # the client is gone
        if made is None:
            return
        self.connection_made(made)
        self._busy = False
        self.data_received(b"")  # what came with the end of the handshake

    def _auth(self, argument: str) -> None:
        way, _, initial = argument.partition(" ")
        if self._server.strict and not self._encrypted:
            self._say("538 5.7.11 encryption is required to sign in")
        elif self._signed_in:
            self._say("503 5.5.1 signed in already")
        elif way.upper() == "PLAIN":
            self._ask(initial, "", self._plain)
        elif way.upper() == "LOGIN":
            self._ask(initial, "Username:", self._login)
        elif way.upper() == "XOAUTH2":
            self._ask(initial, "", self._xoauth2)
        else:
            self._say("504 5.5.4 no such mechanism")

    def _ask(self, initial: str, prompt: str, then: Callable[[str], None]) -> None:
        def answered(line: str) -> None:
            try:
                then(base64.b64decode("" if line == "=" else line, validate=True).decode())
            except (binascii.Error, UnicodeDecodeError):
                self._say("501 5.5.2 that is no base64")

        if initial:
            answered(initial)
            return
        self._reading = answered
        self._say(f"334 {base64.b64encode(prompt.encode()).decode()}")

    def _plain(self, said: str) -> None:
        fields = said.split("\0")
        self._sign_in(ok=len(fields) == 3 and self._server.admits(fields[1], fields[2]))

    def _login(self, username: str) -> None:
        self._ask("", "Password:", lambda password: self._sign_in(ok=self._server.admits(username, password)))

    def _xoauth2(self, said: str) -> None:
        found = re.fullmatch(r"user=([^\x01]*)\x01auth=Bearer ([^\x01]*)\x01\x01", said)
        if found and self._server.admits(found[1], token=found[2]):
            self._sign_in(ok=True)
            return
        self._reading = lambda _line: self._sign_in(ok=False)
        self._say(f"334 {_XOAUTH2_ERROR}")

    def _sign_in(self, *, ok: bool) -> None:
        self._signed_in = ok
        self._say("235 2.7.0 signed in" if ok else "535 5.7.8 user name or password are wrong")

    def _mail(self, argument: str) -> None:
        found = _PATH.fullmatch(argument)
        if self._server.strict and not self._signed_in:
            self._say("530 5.7.0 sign in first" if self._encrypted else "530 5.7.0 STARTTLS first")
        elif self._sender is not None:
            self._say("503 5.5.1 a message has begun: RSET")
        elif found is None or argument[:5].upper() != "FROM:" or not (_MAILBOX.fullmatch(found[1]) or not found[1]):
            self._say("501 5.1.7 that is no sender")
        elif (size := re.search(r" SIZE=(\d+)", found[2])) and int(size[1]) > SIZE_LIMIT:
            self._say("552 5.3.4 too large")
        else:
            self._sender = found[1]
            self._say("250 2.1.0 ok")

    def _rcpt(self, argument: str) -> None:
        found = _PATH.fullmatch(argument)
        if self._sender is None:
            self._say("503 5.5.1 MAIL first")
        elif found is None or argument[:3].upper() != "TO:" or not _MAILBOX.fullmatch(found[1]):
            self._say("501 5.1.3 that is no mailbox")
        elif found[1] in self._server.deaths:
            self._say("550 5.1.1 no such mailbox")
        elif self._recipient is not None:
            self._say("452 4.5.3 one recipient for each message")
        else:
            self._recipient = found[1]
            self._say("250 2.1.5 ok")

    def _data(self, _argument: str) -> None:
        if self._recipient is None:
            self._say("503 5.5.1 RCPT first")
            return
        self._in_data = True
        self._say("354 end with a dot alone")

    def _take_message(self) -> bool:
        if self._buffer.startswith(b".\r\n"):
            message, rest = b"", self._buffer[3:]
        else:
            message, end, rest = self._buffer.partition(b"\r\n.\r\n")
            if not end:
                return False
            message += b"\r\n"
        self._buffer = rest
        undotted = re.sub(rb"(?m)^\.", b"", message)
        assert self._connection is not None
        request = Request(
            method="DATA", path=self._recipient or "", body=undotted, connection=self._connection,
            headers={"mail-from": self._sender or "", "rcpt-to": self._recipient or ""},
        )  # fmt: skip
        self._forget()
        self._busy = True
        reply = self._reception.receive(request)
        if reply.turn is not None:
            reply.turn.then = self._answer
        elif reply.delay_s:
            self._loop.call_later(reply.delay_s, self._answer, reply)
        else:
            self._answer(reply)
        return True

    def _answer(self, reply: Reply) -> None:
        """Say what became of a message; what HTTP/2 alone can do ends the connection here."""
        if reply.answer is None:
            if not isinstance(reply.instead, BlackHole):
                self._transport.abort()
            return
        self._busy = False
        self._say(f"{reply.answer.status} {reply.answer.body.decode()}")
        if reply.ends or reply.answer.status == 421:
            self._transport.close()
        elif self._buffer:
            self.data_received(b"")

    def _rset(self, _argument: str) -> None:
        self._forget()
        self._say("250 2.0.0 ok")

    def _noop(self, _argument: str) -> None:
        self._say("250 2.0.0 ok")

    def _quit(self, _argument: str) -> None:
        self._say("221 2.0.0 bye")
        self._transport.close()

    def _violation(self, name: str) -> None:
        assert self._connection is not None
        self._reception.records.violation(self._connection, name)

    def _say(self, line: str) -> None:
        self._transport.write(line.encode() + b"\r\n")


_COMMANDS: dict[str, Callable[[SmtpConnection, str], None]] = {
    "EHLO": SmtpConnection._ehlo,
    "HELO": SmtpConnection._helo,
    "STARTTLS": SmtpConnection._starttls,
    "AUTH": SmtpConnection._auth,
    "MAIL": SmtpConnection._mail,
    "RCPT": SmtpConnection._rcpt,
    "DATA": SmtpConnection._data,
    "RSET": SmtpConnection._rset,
    "NOOP": SmtpConnection._noop,
    "QUIT": SmtpConnection._quit,
}
