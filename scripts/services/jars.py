"""Jars of the servers that run on Java, copied once for each change of the pins by Maven."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from scripts.services.service import Missing

FILES: Final = Path(__file__).resolve().parent / "java"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "services"
QUICK_START: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For tests: half the CPU until the server is ready (Kafka 9.5 -> 5 s, Cassandra 18 -> 9 s), and slower afterwards."""
LASTING: Final = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+PerfDisableSharedMem")
"""For what is measured."""


def class_path(server: str) -> str:
    """What java needs to run that server."""
    return f"{_fetched() / server}/*"


def jar(server: str, library: str) -> Path:
    """One of its libraries, whatever the version."""
    (found,) = (_fetched() / server).glob(f"{library}-*.jar")
    return found


@cache
def _fetched() -> Path:
    """A folder with today's jars; fetched where they are missing, by one process at a time."""
    if shutil.which("java") is None:
        raise Missing("Java is not installed: apt-get install default-jdk-headless")
    pins = hashlib.sha256(b"".join(pom.read_bytes() for pom in sorted(FILES.rglob("pom.xml"))))
    jars = CACHE / f"jars-{pins.hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.exists():
            _fetch(jars)
    return jars


def _fetch(jars: Path) -> None:
    """Both servers' jars in one run of Maven: two at once could spoil each other's repository of downloads."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Missing("Maven is not installed: apt-get install maven")
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        copied = subprocess.run(
            [maven, "--quiet", "--batch-mode", "--threads", "2", "--file", FILES / "pom.xml", f"-Djars={scratch}/jars",
             "dependency:copy-dependencies"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if copied.returncode != 0:
            raise Missing(f"Maven could not fetch the servers:\n{copied.stdout}")
        Path(scratch, "jars").rename(jars)
