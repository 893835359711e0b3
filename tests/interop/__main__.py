"""`python -m tests.interop [--requests N] [NAME …]`: the whole matrix, one row a server; 1 unless all are right."""

import argparse
import ssl
import sys
import tempfile
from pathlib import Path

import uvloop

from tests.interop import load
from tests.interop.servers import LARGE, ORDINARY, Server, Site
from waypost.bench.kernel import certificate


def main() -> None:
    """Build, serve, load and judge one server after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("names", nargs="*", help="only these servers")
    asked = parser.parse_args()
    print(
        f"{'server':14}{'requests':>10}{'right':>10}{'wrong':>7}{'unknown':>9}{'again':>7}{'MB each way':>13}"
        f"{'connections':>13}{'resent':>8}{'seconds':>9}",
        flush=True,
    )
    failed = False
    for server in (*ORDINARY, *LARGE):
        if not asked.names or server.name in asked.names:
            failed |= not _row(server, asked.requests)
    sys.exit(1 if failed else 0)


def _row(server: Server, requests: int) -> bool:
    missing = server.missing()
    if missing:
        print(f"{server.name:14} not installed: {', '.join(missing)}", flush=True)
        return False
    server.build()
    with tempfile.TemporaryDirectory() as name:
        cert_file, key_file = certificate(Path(name))
        trust = ssl.create_default_context(cafile=str(cert_file))
        with server.serve(Site(Path(name), cert_file, key_file)) as port:
            row = uvloop.run(load.run(port, trust, requests, server.answer))
    print(
        f"{server.name:14}{row.requests:>10}{row.right:>10}{row.wrong:>7}{row.unknown:>9}{row.again:>7}{row.megabytes:>13.0f}"
        f"{row.connections:>13}{row.resent:>8}{row.seconds:>9.1f}",
        flush=True,
    )
    return row.right == row.requests


if __name__ == "__main__":
    main()
