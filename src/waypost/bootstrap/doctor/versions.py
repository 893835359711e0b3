"""The versions of what Waypost runs on."""

from __future__ import annotations

import platform
import ssl
import sys
from collections.abc import Iterator
from typing import Final

from waypost import __version__
from waypost.bootstrap.doctor.findings import Finding, ok, problem, warning
from waypost.bootstrap.opening import missing_extras
from waypost.bootstrap.senders import http2_kernel
from waypost.config import Config
from waypost.domain.extras import how_to_install
from waypost.stores.sql.connection import SAFE_WITH_MANY_WORKERS, dbapi

VERSIONS: Final = "versions"
OLDEST_PYTHON: Final = (3, 11)
_OLDEST_OPENSSL: Final = (3, 0)


def look_at_versions(config: Config | None) -> Iterator[Finding]:
    """Look at Python, SQLite and OpenSSL, and for the clients that *config* needs."""
    yield ok(VERSIONS, "waypost", f"{__version__}, HTTP/2 client: {http2_kernel()}")
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform(terse=True)}"
    if sys.version_info >= OLDEST_PYTHON:
        yield ok(VERSIONS, "python", python)
    else:
        yield problem(VERSIONS, "python", python, "install Waypost with Python 3.11 or newer")
    yield _sqlite()
    if ssl.OPENSSL_VERSION_INFO[:2] >= _OLDEST_OPENSSL:
        yield ok(VERSIONS, "openssl", ssl.OPENSSL_VERSION)
    else:
        yield warning(
            VERSIONS, "openssl", f"{ssl.OPENSSL_VERSION}, which gets no more repairs", "use a Python with OpenSSL 3"
        )
    for path, extra in missing_extras(config) if config is not None else ():
        saw = f"{path} needs a client that is not installed"
        yield problem(VERSIONS, extra, saw, how_to_install(extra))


def _sqlite() -> Finding:
    library = f"SQLite {dbapi.sqlite_version} ({dbapi.__name__.partition('.')[0]})"
    if SAFE_WITH_MANY_WORKERS:
        return ok(VERSIONS, "sqlite", library)
    why = "can damage a log that several processes share"
    return warning(VERSIONS, "sqlite", f"{library}: {why}", "install pysqlite3-binary, or keep `workers: 1` on SQLite")
