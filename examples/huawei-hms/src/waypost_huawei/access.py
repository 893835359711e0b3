"""Access tokens: one for all messages, asked for when there is none, kept for most of its hour."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from waypost.channels.push.patience import Until
from waypost.channels.push.provider import Provider
from waypost.channels.push.reading import read_json
from waypost.domain.outcome import CredentialRejected, Unreachable
from waypost.http2 import Answer, Unknown, Unsent

TOKEN_PATH: Final = "/oauth2/v3/token"
USED_FOR: Final = 0.8
"""The part of its life for which a token is used."""
_FORM: Final = (("content-type", "application/x-www-form-urlencoded"),)

Problem = CredentialRejected | Unreachable
"""Why there is no token; nothing was sent, in either case."""


class _Granted(Struct):
    access_token: str
    expires_in: float = 3600


_granted = msgspec.json.Decoder(_Granted)


class AccessTokens:
    """The keeper of the token of one app."""

    def __init__(self, provider: Provider, app_id: str, secret: str) -> None:
        self._provider = provider
        self._form = urlencode({"grant_type": "client_credentials", "client_id": app_id, "client_secret": secret})
        self._asking = asyncio.Lock()
        self._token, self._used_until_s = "", 0.0

    async def current(self, until: Until) -> str | Problem:
        """Return the token, or why there is none; those who come while it is asked for wait for the same answer."""
        async with self._asking:
            now_s = asyncio.get_running_loop().time()
            if self._token and now_s < self._used_until_s:
                return self._token
            match await self._provider.post(TOKEN_PATH, _FORM, self._form.encode(), until):
                case Answer(status=200, body=body) if granted := read_json(_granted, body):
                    self._token, self._used_until_s = granted.access_token, now_s + granted.expires_in * USED_FOR
                    return self._token
                case Answer(status=400 | 401 | 403 as status):
                    return CredentialRejected(f"oauth_{status}", "Huawei does not take the app's id and secret")
                case Answer(status=status):
                    return Unreachable(f"oauth_{status}", "no access token is to be had")
                case Unsent(reason=reason) | Unknown(reason=reason):
                    return Unreachable("oauth_unavailable", reason)

    def forget(self, token: str) -> None:
        """Use a token no more that Huawei refused, unless another one has replaced it."""
        if token == self._token:
            self._token = ""
