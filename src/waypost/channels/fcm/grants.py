"""The requests for access tokens: with a service account's key, or of the machine that Google runs us on.

Sources: RFC 6749 section 5, RFC 7523; cloud.google.com, "About VM metadata" and "Authenticate workloads".
"""

from __future__ import annotations

import os
import ssl
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

import aiohttp
import msgspec
from msgspec import Raw, Struct

from waypost.channels.fcm.credentials import SCOPE, ServiceAccount, read_service_account
from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.push.reading import NOTHING, number_of, read_json, text_of, word_of
from waypost.domain.errors import ConfigurationError
from waypost.domain.outcome import CredentialRejected, Unreachable
from waypost.domain.time import SECOND_MS
from waypost.ports.clock import Clock

TIMEOUT_S: Final = 10.0
METADATA: Final = "metadata"
"""The word in place of a key file for the machine's own account."""
_METADATA_HOST: Final = "metadata.google.internal"
_METADATA_TIMEOUT_S: Final = 3.0
_FLAVOR: Final = {"Metadata-Flavor": "Google"}
_GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SKEW_S: Final = 60
"""The difference of clocks that Google minds, seconds."""

Problem = CredentialRejected | Unreachable
"""The reason why there is no access token, as the outcome of a delivery that needed one."""


class Grant(Struct):
    """An access token, and the seconds for which it is said to be good."""

    access_token: str
    expires_in: float = 3600


class _Granted(Struct):
    access_token: Raw = NOTHING
    expires_in: Raw = NOTHING


class _Fault(Struct):
    error: Raw = NOTHING
    error_description: Raw = NOTHING


_grants = msgspec.json.Decoder(_Granted)
_faults = msgspec.json.Decoder(_Fault)


class Grants(Protocol):
    """A source of access tokens."""

    async def ask(self) -> Grant | Problem:
        """Ask for a new access token; return it, or why there is none."""
        ...


class AssertionGrants:
    """A source that trades assertions signed by a service account's key for access tokens."""

    def __init__(self, account: ServiceAccount, tls: ssl.SSLContext, clock: Clock, proxy: str | None = None) -> None:
        self._account = account
        self._proxy = proxy
        self._tls = tls
        self._clock = clock

    async def ask(self) -> Grant | Problem:
        """See Grants."""
        form = {"grant_type": _GRANT_TYPE, "assertion": self._account.assertion(self._clock.now())}
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
                session.post(
                    self._account.token_uri, data=form, ssl=self._tls, proxy=self._proxy, allow_redirects=False
                ) as answer,
            ):
                ahead_s = _ahead_s(answer.headers.get("Date", ""), self._clock.now() / SECOND_MS)
                return _read(answer.status, await answer.read(), ahead_s)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Unreachable("oauth_unavailable", f"the token endpoint cannot be reached: {type(error).__name__}")


class MetadataGrants:
    """The metadata server of a Google machine, found by ``GCE_METADATA_HOST`` or its name, as source of tokens."""

    def __init__(self) -> None:
        self._base = f"http://{os.environ.get('GCE_METADATA_HOST', _METADATA_HOST)}/computeMetadata/v1"

    async def ask(self) -> Grant | Problem:
        """See Grants."""
        path = f"/instance/service-accounts/default/token?scopes={quote(SCOPE, safe='')}"
        try:
            status, body = await self._get(path)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Unreachable("oauth_unavailable", f"the metadata server gives no token: {type(error).__name__}")
        if status == 200:
            return _grant(body) or Unreachable("oauth_unavailable", "the metadata server answered without a token")
        if status in (403, 404):
            return CredentialRejected("metadata_denied", "the metadata server knows no account of this machine for FCM")
        return Unreachable("oauth_unavailable", f"the metadata server answered {status}")

    async def project_id(self) -> str:
        """Ask for the project that the machine belongs to; "" where the server does not say."""
        try:
            status, body = await self._get("/project/project-id")
        except (aiohttp.ClientError, OSError, TimeoutError):
            return ""
        return body.decode("ascii", "replace").strip() if status == 200 else ""

    async def _get(self, path: str) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=_METADATA_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(self._base + path, headers=_FLAVOR, allow_redirects=False) as answer,
        ):
            return answer.status, await answer.read()


async def project_and_grants(
    section: str, settings: FcmSettings, tls: ssl.SSLContext, clock: Clock
) -> tuple[str, Grants]:
    """Return the project to send for, and its source of access tokens; ConfigurationError names a key of *section*."""
    if Path(settings.service_account_file).name != METADATA:
        account = read_service_account(section, settings)
        return settings.project_id or account.project_id, AssertionGrants(account, tls, clock, settings.proxy)
    machine = MetadataGrants()
    project_id = settings.project_id or await machine.project_id()
    if not project_id:
        path = f"{section}.service_account_file"
        raise ConfigurationError(path, "there is no metadata server that names a project: this is no Google machine")
    return project_id, machine


def _read(status: int, body: bytes, ahead_s: float | None) -> Grant | Problem:
    if status == 200 and (grant := _grant(body)) is not None:
        return grant
    fault = read_json(_faults, body) or _Fault()
    code = word_of(fault.error)
    if status in (400, 401, 403) and code:
        return CredentialRejected(code, _why_denied(code, text_of(fault.error_description), ahead_s))
    return Unreachable("oauth_unavailable", f"the token endpoint answered {status} without a token")


def _grant(body: bytes) -> Grant | None:
    """Read the access token from an answer; its lifetime counts only where it can be read."""
    granted = read_json(_grants, body) or _Granted()
    access_token, life_s = text_of(granted.access_token), number_of(granted.expires_in)
    if not access_token.isascii() or not access_token.isprintable() or not access_token:
        return None
    return Grant(access_token) if life_s is None else Grant(access_token, life_s)


def _why_denied(code: str, description: str, ahead_s: float | None) -> str:
    """Explain a refusal in our words: Google's description may name the account."""
    if code == "invalid_grant" and ahead_s is not None and abs(ahead_s) >= _SKEW_S:
        where = "ahead of" if ahead_s > 0 else "behind"
        return f"this machine's clock is {abs(ahead_s):.0f} s {where} Google's: set it right"
    if "iat and exp" in description:
        return "the times in the request are not near Google's: is this machine's clock right?"
    return "the token endpoint refuses the service account: is its key still there, and the clock right?"


def _ahead_s(date: str, now_s: float) -> float | None:
    """Compute by how much our clock is ahead of the ``Date`` of an answer (RFC 9110 section 6.6.1)."""
    try:
        return now_s - parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
