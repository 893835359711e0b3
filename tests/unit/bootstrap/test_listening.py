"""What listening needs of the system."""

from __future__ import annotations

import resource
import subprocess
import sys

from waypost.bootstrap.listening import allow_open_files


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    """Of this process, and of those it starts."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), most))
        allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
        asked = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
        told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
        assert int(told.stdout) == most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
