"""One connection to an SMTP server: it is opened, signed in, and carries one message after the other."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import Final

from aiosmtplib import SMTP, SMTPException, SMTPResponseException
from msgspec import Struct

from waypost.channels.email.access import Access
from waypost.channels.email.errors import Stage, outcome_of_reply, outcome_without_answer
from waypost.domain.outcome import Outcome, Taken, Unreachable

_LINE_BEGINS_WITH_DOT: Final = re.compile(rb"(?m)^\.")


class Mail(Struct, frozen=True):
    """A message, and the envelope around it."""

    sender: str
    recipient: str
    message: bytes
    message_id: str


class Failed(Exception):
    """The error that no session could be opened; *outcome* is what that means for whatever waits for one."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class Session:
    """An open session; *stage* says how far the message on the way has come."""

    def __init__(self, client: SMTP) -> None:
        self._client = client
        self._begun = False
        """Whether the server remembers a message that came to nothing."""
        self.stage = Stage.MAIL

    @property
    def is_open(self) -> bool:
        """Whether another message can be tried on it."""
        return self._client.is_connected

    async def carry(self, mail: Mail) -> Outcome:
        """Hand over *mail*; TimeoutError and CancelledError pass through, and leave *stage*."""
        self.stage = Stage.MAIL
        try:
            outcome = await self._carry(mail)
        except SMTPResponseException as error:
            outcome = self._answered(error.code, error.message)
        except (SMTPException, OSError):
            self._client.close()
            outcome = lost(self.stage)
        except asyncio.CancelledError:
            self._client.close()
            raise
        self._begun = not isinstance(outcome, Taken)
        return outcome

    async def _carry(self, mail: Mail) -> Outcome:
        client = self._client
        if self._begun:
            await client.rset()
        sizes = client.supports_extension("size")
        await client.mail(mail.sender, options=[f"SIZE={len(mail.message)}"] if sizes else [])
        self.stage = Stage.RCPT
        await client.rcpt(mail.recipient)
        self.stage = Stage.DATA
        code, text = await client.execute_command(b"DATA")
        if code != 354 or client.protocol is None:
            return self._answered(code, text)
        client.protocol.write(_LINE_BEGINS_WITH_DOT.sub(b"..", mail.message) + b".\r\n")
        self.stage = Stage.DOT
        code, text = await client.protocol.read_response()
        return Taken(mail.message_id) if 200 <= code < 300 else self._answered(code, text)

    def _answered(self, code: int, text: str) -> Outcome:
        """Read an answer that is no success; after 421, or what is no answer, nothing more is said."""
        if not 422 <= code <= 599:
            self._client.close()
        return outcome_of_reply(code, text, self.stage)

    async def close(self) -> None:
        """Say goodbye, and close whatever is answered."""
        try:
            async with asyncio.timeout(1):
                await self._client.quit()
        except (SMTPException, OSError):
            pass
        finally:
            self._client.close()


async def opened(access: Access) -> Session:
    """Connect, encrypt and sign in; Failed says what came of it. TimeoutError passes through."""
    client = SMTP(
        hostname=access.host,
        port=access.port,
        use_tls=access.security == "tls",
        start_tls=False,
        tls_context=access.tls,
        local_hostname=access.our_name,
        timeout=None,
    )
    stage = Stage.GREETING
    try:
        await client.connect()
        await client.ehlo()
        if access.security == "starttls":
            await client.starttls(server_hostname=access.host, tls_context=access.tls)
            await client.ehlo()
        stage = Stage.LOGIN
        await _sign_in(client, access)
    except SMTPResponseException as error:
        client.close()
        raise Failed(outcome_of_reply(error.code, error.message, stage)) from None
    except OSError as error:
        client.close()
        raise Failed(_not_connected(error)) from None
    except SMTPException:
        client.close()
        raise Failed(_not_offered(stage)) from None
    except asyncio.CancelledError:
        client.close()
        raise
    return Session(client)


def lost(stage: Stage) -> Outcome:
    """Return the outcome of a connection that ended under a message."""
    return outcome_without_answer("connection_lost", "the connection was lost", stage)


def late(stage: Stage) -> Outcome:
    """Return the outcome of a message that the server took too long for."""
    return outcome_without_answer("timeout", "no answer in time", stage)


async def _sign_in(client: SMTP, access: Access) -> None:
    if access.username is None:
        return
    if access.token is not None:
        await client.auth_xoauth2(access.username, access.token)
    elif access.password is not None:
        await client.login(access.username, access.password)


def _not_offered(stage: Stage) -> Outcome:
    if stage is Stage.LOGIN:
        return Unreachable("no_login", "the server offers no way to sign in that we know")
    return Unreachable("no_starttls", "the server does not encrypt: STARTTLS is not offered")


def _not_connected(error: OSError) -> Outcome:
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Unreachable("not_connected", f"the server's certificate is not valid: {cause.verify_message}")
    if isinstance(cause, ssl.SSLError):
        return Unreachable("not_connected", "TLS failed")
    if isinstance(cause, OSError) and cause.strerror:
        return Unreachable("not_connected", f"cannot connect: {cause.strerror}")
    return Unreachable("not_connected", "cannot connect")
