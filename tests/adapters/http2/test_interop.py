"""The pool against servers that others wrote: 2,000 requests of mixed sizes each, no wrong answer.

`make interop` runs the same and more servers with 100,000 requests each.
"""

import os
import ssl
from pathlib import Path

import pytest
import uvloop

from tests.adapters.http2.client import Tls
from tests.interop import load
from tests.interop.servers import ORDINARY, Server, Site
from tests.tables import AddRow

REQUESTS = 2000


@pytest.mark.parametrize("server", ORDINARY, ids=lambda server: server.name)
def test_every_answer_is_right(server: Server, tls: Tls, tmp_path: Path, table: AddRow) -> None:
    """Each answer is the hash of the request's body, and the body: nothing is lost, mixed up or sent twice."""
    missing = server.missing()
    if missing:
        assert os.environ.get("CI") != "true", f"not installed: {missing}"
        pytest.skip(f"not installed: {', '.join(missing)} (make test installs it as root)")
    server.build()
    trust = ssl.create_default_context(cafile=str(tls.cert_file))
    with server.serve(Site(tmp_path, tls.cert_file, tls.key_file)) as port:
        row = uvloop.run(load.run(port, trust, REQUESTS, server.answer))
    table(
        "HTTP/2 interop",
        server=server.name,
        requests=row.requests,
        right=row.right,
        wrong=row.wrong,
        unknown=row.unknown,
        again=row.again,
        connections=row.connections,
        resent=row.resent,
    )
    assert row.right == row.requests
