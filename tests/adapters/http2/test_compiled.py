"""The kernel as C, made by mypyc from the same source (docs/decisions/0015): it keeps the same promises.

`make compiled` runs all that the kernel is held to; here is what takes seconds.
"""

import os
from pathlib import Path

import pytest

from scripts.compiled import can_compile, held_to, unpacked

QUICK = (
    "tests/adapters/http2/test_hostile_connections.py",
    "tests/adapters/http2/test_hostile_frames.py",
    "tests/adapters/http2/test_hostile_server.py",
    "tests/adapters/http2/test_pool_life.py",
    "tests/unit/http2/test_against_h2.py",
    "tests/unit/http2/test_connection.py",
    "tests/unit/http2/test_connection_faults.py",
    "tests/unit/http2/test_deadlines.py",
    "tests/unit/http2/test_fuzz_corpus.py",
    "tests/unit/http2/test_patience.py",
)


@pytest.mark.timeout(600)  # it compiles where the source has changed, on however busy a machine
def test_the_compiled_kernel_passes_the_tests_of_its_source(tmp_path: Path) -> None:
    """From a wheel of this platform, built and unpacked."""
    if not can_compile():
        assert os.environ.get("CI") != "true", "no C compiler"
        pytest.skip("no C compiler, or no Python.h (make test installs them as root)")
    ended = held_to(unpacked(tmp_path), list(QUICK))
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
