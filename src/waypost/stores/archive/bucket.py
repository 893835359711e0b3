"""Where files lie: a folder, or a bucket of an S3-compatible store. All calls block: they run in threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol
from urllib.parse import urlsplit

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.stores.archive.settings import S3Settings

S3: Final = "s3"


class ArchiveAway(Unavailable):
    """The error that a file of the archive cannot be reached."""

    code = ErrorCode.ARCHIVE_AWAY


class Bucket(Protocol):
    """Files by path; each call raises ArchiveAway where it cannot be done."""

    def put(self, path: str, data: bytes) -> None:
        """Store a file durably; a reader sees all of it or nothing."""
        ...

    def get(self, path: str) -> bytes:
        """Read a file whole."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open a file to read parts of it."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is gone already."""
        ...

    def paths(self) -> list[str]:
        """List every file."""
        ...


class Folder:
    """A folder of this machine, or a mounted one."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, path: str, data: bytes) -> None:
        """See Bucket."""
        with _telling(path):
            whole = self._root / path
            whole.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = whole.with_name(f".{whole.name}.part")
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(whole)
            for folder in (whole.parent, *whole.parent.parents[: len(Path(path).parts) - 1]):
                _sync(folder)

    def get(self, path: str) -> bytes:
        """See Bucket."""
        with _telling(path):
            return (self._root / path).read_bytes()

    def open(self, path: str) -> IO[bytes]:
        """See Bucket."""
        with _telling(path):
            return (self._root / path).open("rb")

    def delete(self, path: str) -> None:
        """See Bucket."""
        with _telling(path):
            whole = self._root / path
            whole.with_name(f".{whole.name}.part").unlink(missing_ok=True)
            if whole.exists():
                whole.unlink()
                _sync(whole.parent)

    def paths(self) -> list[str]:
        """See Bucket."""
        with _telling(""):
            return sorted(
                str(each.relative_to(self._root))
                for each in self._root.rglob("*")
                if each.is_file() and not each.name.startswith(".")
            )


class S3Bucket:
    """A bucket of an S3-compatible store, below a prefix."""

    def __init__(self, url: str, settings: S3Settings) -> None:
        """Create it; nothing is asked yet. OSError where the file of the secret cannot be read."""
        import obstore.store  # noqa: PLC0415 - an optional extra

        at = urlsplit(url)
        given: dict[str, Any] = {"region": settings.region, "prefix": at.path.strip("/") or None}
        if settings.endpoint is not None:
            given["endpoint"] = settings.endpoint
            given["client_options"] = {"allow_http": settings.endpoint.startswith("http://")}
        if settings.access_key_id is not None and settings.secret_access_key_file is not None:
            given["access_key_id"] = settings.access_key_id
            given["secret_access_key"] = Path(settings.secret_access_key_file).read_text().strip()
        self._obstore = obstore
        self._store = obstore.store.S3Store(at.netloc, **given)

    def put(self, path: str, data: bytes) -> None:
        """See Bucket."""
        with _telling(path):
            self._obstore.put(self._store, path, data)

    def get(self, path: str) -> bytes:
        """See Bucket."""
        with _telling(path):
            return bytes(self._obstore.get(self._store, path).bytes())

    def open(self, path: str) -> IO[bytes]:
        """See Bucket."""
        with _telling(path):
            opened: Any = self._obstore.open_reader(self._store, path, buffer_size=1 << 17)
            return opened  # type: ignore[no-any-return]  # it reads, seeks and tells as a file does

    def delete(self, path: str) -> None:
        """See Bucket."""
        with _telling(path):
            try:
                self._obstore.delete(self._store, path)
            except FileNotFoundError:
                return

    def paths(self) -> list[str]:
        """See Bucket."""
        with _telling(""):
            return sorted(each["path"] for page in self._obstore.list(self._store) for each in page)


def bucket_at(place: str, settings: S3Settings) -> Bucket:
    """Return the bucket at ``s3://bucket/prefix``, or the folder of that path."""
    return S3Bucket(place, settings) if urlsplit(place).scheme == S3 else Folder(Path(place))


@contextmanager
def _telling(path: str) -> Iterator[None]:
    """Tell the path that could not be reached, and what kind of fault it was; never what a server said."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith("obstore"):
            raise
        raise ArchiveAway(f"the archive's {path or 'list'} cannot be reached: {type(error).__name__}") from error


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
