"""Asking an issuer, for its key set above all: bounded in time and size, from the one place that is named."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import aiohttp

TIMEOUT_S: Final = 5.0
LIMIT_BYTES: Final = 262_144
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


async def over_http(
    url: str, ca_file: str | None, form: Mapping[str, str] | None = None, headers: Mapping[str, str] = _NO_HEADERS
) -> bytes:
    """Fetch *url*, by POST where there is a *form*; OSError in our words where no 200 of bearable size is answered.

    A redirect is no answer: it would name another place than the operator did. Nothing is decompressed.
    """
    try:
        tls = await asyncio.to_thread(ssl.create_default_context, cafile=ca_file)
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            ) as session,
            session.request(
                "GET" if form is None else "POST",
                url,
                data=form,
                ssl=tls,
                allow_redirects=False,
                headers={"accept-encoding": "identity", **headers},
            ) as answer,
        ):
            if answer.status != 200:
                raise OSError(f"answered {answer.status}")
            text = b""
            while piece := await answer.content.readany():
                text += piece
                if len(text) > LIMIT_BYTES:
                    raise OSError(f"larger than {LIMIT_BYTES} bytes")
            return text
    except (aiohttp.ClientError, TimeoutError, ssl.SSLError) as error:
        raise OSError(f"cannot be reached: {type(error).__name__}") from None


async def from_file(path: str) -> bytes:
    """Read the file; OSError where it cannot be read or is too large."""
    return await asyncio.to_thread(_read, Path(path))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        text = file.read(LIMIT_BYTES + 1)
    if len(text) > LIMIT_BYTES:
        raise OSError(f"larger than {LIMIT_BYTES} bytes")
    return text
