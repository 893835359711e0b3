"""Files of SQLite with today's schema and nothing in them: a copy saves each test the migration, 0.36 s of CPU."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from waypost.bootstrap.features import tables
from waypost.domain.time import Instant
from waypost.stores.sql.database import prepare
from waypost.stores.sql.settings import Durability, SqlSettings


def put_empty(path: Path) -> Path:
    """Write one there, if there is no file yet; the same path."""
    if not path.exists():
        path.write_bytes(_made())
        path.chmod(0o600)
    return path


@cache
def _made() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        prepare(SqlSettings(f"sqlite:///{path}", durability=Durability.PROCESS, reserve_bytes=1), Instant(0), tables())
        return path.read_bytes()
