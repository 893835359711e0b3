"""PostgreSQL, of the Debian package `postgresql`."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from scripts.services import processes
from scripts.services.service import HOST, Broken, Missing, Node, Service

PACKAGED: Final = Path("/usr/lib/postgresql")  # its programs are not on the path
# Both programs refuse to run as root.
AS_OWNER: Final = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
FORGETFUL: Final = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"


class Postgres(Service):
    """One server, its data in the node's folder; whoever reaches the loopback is trusted."""

    kind = "PostgreSQL"
    ends_on = signal.SIGINT  # SIGTERM would wait for clients to leave

    @classmethod
    def fetch(cls) -> None:
        """See Service."""
        program("postgres")

    def ports_wanted(self) -> int:
        """See Service."""
        return 1

    def configure(self, node: Node) -> None:
        """See Service."""
        data = node.folder / "data"
        if (data / "PG_VERSION").exists():
            _clear_crash(data)
            return
        if AS_OWNER:
            shutil.chown(node.folder, "postgres", "postgres")
        made = subprocess.run(
            [*AS_OWNER, program("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
             "--locale=C.UTF-8", "--no-sync"],
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            raise Broken(f"initdb ended with {made.returncode}:\n{made.stdout}")
        with (data / "pg_hba.conf").open("a") as clients:
            clients.write("host all all samenet trust\n")  # who comes from a namespace of this machine, to the loopback
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = '{HOST}'\n"
                f"port = {self.port(node)}\n"
                "unix_socket_directories = ''\n"
                "max_connections = 200\n"
                "max_wal_size = 2GB\n"
                "timezone = 'UTC'\n"
                "log_timezone = 'UTC'\n"
                "jit = off\n"
                f"{'' if self.durable else FORGETFUL}"
            )

    def command(self, node: Node) -> list[str]:
        """See Service."""
        return [*AS_OWNER, program("postgres"), "-D", str(node.folder / "data")]

    def ready(self, node: Node) -> bool:
        """See Service."""
        ask = [program("pg_isready"), "-q", "-h", HOST, "-p", str(self.port(node)), "-U", "postgres"]
        return subprocess.run(ask, check=False).returncode == 0

    def port(self, node: Node) -> int:
        """Return the port that the node listens on."""
        return self.ports[node.number - 1]

    @property
    def url(self) -> str:
        """See Service."""
        return f"postgresql://postgres@{HOST}:{self.ports[0]}/postgres"


class PostgresPair(Postgres):
    """A primary (node 1) and its standby, which takes over when it is told to."""

    kind = "PostgreSQL with a standby"

    def ports_wanted(self) -> int:
        """See Service."""
        return self.size

    def start_order(self) -> list[list[Node]]:
        """The standby begins as a copy of the primary."""
        return [[node] for node in self.nodes]

    def configure(self, node: Node) -> None:
        """See Service."""
        data = node.folder / "data"
        if node.number == 1 or (data / "PG_VERSION").exists():
            super().configure(node)
            return
        if AS_OWNER:
            shutil.chown(node.folder, "postgres", "postgres")
        copied = subprocess.run(
            [*AS_OWNER, program("pg_basebackup"), "-D", data, "-h", HOST, "-p", str(self.ports[0]), "-U", "postgres",
             "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"],
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if copied.returncode != 0:
            raise Broken(f"pg_basebackup ended with {copied.returncode}:\n{copied.stdout}")
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(f"port = {self.port(node)}\n")

    def promote(self) -> None:
        """Make the standby a primary, which waits for nobody; return once it takes writes."""
        self._changed.touch()
        told = subprocess.run(
            [*AS_OWNER, program("pg_ctl"), "promote", "-w", "-D", self.nodes[1].folder / "data"],
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if told.returncode != 0:
            raise Broken(f"pg_ctl promote ended with {told.returncode}:\n{told.stdout}")

    def synchronous(self) -> None:
        """From now on the primary answers once the standby has what was written."""
        self._tell(1, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        self._await(1, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def fall_behind(self) -> None:
        """From now on the standby gets nothing more, and nobody waits for it."""
        self._tell(1, "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
        self._tell(2, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        self._await(1, "SELECT count(*) = 0 FROM pg_stat_replication")

    @property
    def was_changed(self) -> bool:
        """Whether they are otherwise than they were first."""
        return self._changed.exists() or not self.running()

    def anew(self) -> None:
        """Both as they were first, whatever became of them."""
        self.down()
        self._changed.unlink(missing_ok=True)
        for node in self.nodes:
            shutil.rmtree(node.folder, ignore_errors=True)
        self.up()

    @property
    def _changed(self) -> Path:
        return self.folder / "changed"

    def _tell(self, number: int, *statements: str) -> None:
        self._changed.touch()
        for statement in statements:
            self._psql(number, statement)

    def _await(self, number: int, condition: str) -> None:
        while self._psql(number, condition) != "t":
            time.sleep(0.02)  # nothing tells of what its other processes do

    def _psql(self, number: int, statement: str) -> str:
        ask = [program("psql"), "-XqtA", "-d", self.url_of(number), "-c", statement]
        done = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Broken(f"psql ended with {done.returncode}:\n{done.stdout}")
        return done.stdout.strip()

    @property
    def url(self) -> str:
        """See Service."""
        return self.url_to("postgres")

    def url_to(self, database: str) -> str:
        """Return the URL of a database on whichever of them takes writes, as clients find out."""
        hosts = ",".join(f"{HOST}:{port}" for port in self.ports)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def url_of(self, number: int) -> str:
        """Return the URL of one of them."""
        return f"postgresql://postgres@{HOST}:{self.ports[number - 1]}/postgres"


def program(name: str) -> str:
    """The newest installed program of that name."""
    found = sorted(PACKAGED.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    best = str(found[-1]) if found else shutil.which(name)
    if best is None:
        raise Missing("PostgreSQL is not installed: apt-get install postgresql")
    return best


def _clear_crash(data: Path) -> None:
    """Let a server that was killed start again: its children must be gone, then its lock file may go.

    The pid in that file may stay taken for seconds where whoever adopted the process reaps late.
    """
    while any(_works_in(pid, data) for pid in processes.pids()):
        time.sleep(0.02)  # they are not our children: nobody tells us of their end
    (data / "postmaster.pid").unlink(missing_ok=True)


def _works_in(pid: int, folder: Path) -> bool:
    try:
        return (processes.PROC / str(pid) / "cwd").readlink() == folder
    except OSError:
        return False
