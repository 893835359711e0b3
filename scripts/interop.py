"""Install the servers of the whole interop matrix where they are missing, and run it: `python -m scripts.interop`."""

import subprocess
import sys

from scripts.test import PROGRAMS, PYTHON, ROOT, install_missing

MORE = {"haproxy": "haproxy", "cargo": "cargo", "mvn": "maven", "java": "default-jdk-headless"}


def main() -> None:
    """Arguments are those of `python -m tests.interop`: a number of requests, names of servers."""
    install_missing(PROGRAMS | MORE)
    ended = subprocess.run([PYTHON, "-m", "tests.interop", *sys.argv[1:]], cwd=ROOT, check=False)
    sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
