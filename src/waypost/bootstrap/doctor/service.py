"""The service on this machine, as it sees itself: ``/health/ready`` where the configuration says that it listens."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final

import aiohttp
import msgspec

from waypost.bootstrap.doctor.findings import Finding, ok, problem, skipped, warning
from waypost.config import Config
from waypost.runtime.listening import TlsSettings

SERVICE: Final = "service"
_TIMEOUT_S: Final = 5.0
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - not bound to, but asked by another name


class _Said(msgspec.Struct):
    ready: bool
    checks: dict[str, str] = {}


async def look_at_service(config: Config) -> list[Finding]:
    """Ask the service how it is; that none runs here is no fault."""
    host = _ANY.get(config.listen.host, config.listen.host)
    scheme, place = "http" if config.rest.tls is None else "https", f"[{host}]" if ":" in host else host
    url = f"{scheme}://{place}:{config.listen.port}/health/ready"
    if config.listen.port == 0:
        return [skipped(SERVICE, url, "it listens on a port that is free at its start")]
    try:
        patience = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=patience) as session,
            session.get(url, ssl=_its_own(config.rest.tls)) as said,
        ):
            found = msgspec.json.decode(await said.read(), type=_Said)
    except (aiohttp.ClientConnectorError, OSError):
        return [skipped(SERVICE, url, "none runs here")]
    except TimeoutError:
        do = "look at its log for worker.frozen and loop.blocked; systemctl restart waypost"
        return [problem(SERVICE, url, f"no answer in {_TIMEOUT_S:g} s", do)]
    except (aiohttp.ClientError, msgspec.DecodeError):
        return [warning(SERVICE, url, "what answers there is no Waypost", "mend `listen`, or end what has its port")]
    return [*_of(found, url)]


def _of(found: _Said, url: str) -> Iterator[Finding]:
    wrong = {name: why for name, why in found.checks.items() if why != "ok"}
    if found.ready:
        yield ok(SERVICE, url, f"ready, {len(found.checks) - len(wrong)} of {len(found.checks)} parts are well")
    else:
        yield problem(SERVICE, url, "it takes no requests", "the lines below say why; docs/runbook.md#waypostdown")
    for name, why in wrong.items():
        yield warning(SERVICE, name, why, "journalctl -u waypost; docs/runbook.md has a section for each alert")


def _its_own(tls: TlsSettings | None) -> ssl.SSLContext | bool:
    """Return what trusts the service's own certificate, whatever name it is for: we ask on this machine."""
    if tls is None:
        return True
    context = ssl.create_default_context(cafile=tls.certificate_file)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
