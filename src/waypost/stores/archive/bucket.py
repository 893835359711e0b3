"""Where files lie: a folder, or a bucket of an S3-compatible store. All calls block: they run in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, Final, Protocol
from urllib.parse import urlsplit

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.ports.archive import Fault
from waypost.stores.archive.settings import S3Settings

S3: Final = "s3"
_READ_AHEAD: Final = 1 << 17
"""Bytes that are read of a file at least: its end and one group of rows of most files."""
_PATIENCE: Final = {"connect_timeout": "3s", "timeout": "30s"}
_RETRIES: Final = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""Who looks something up waits no longer; the duty and an erasure try again anyway."""


class ArchiveAway(Unavailable):
    """The error that a file of the archive cannot be reached."""

    code = ErrorCode.ARCHIVE_AWAY


class Unsound(ArchiveAway):
    """The error that one file is lost, or is not what was written; the others may be well."""

    def __init__(self, path: str, fault: Fault, why: str) -> None:
        """Create it; *why* goes on after the path."""
        super().__init__(f"the archive's {path} {why}")
        self.path = path
        self.fault = fault


class Bucket(Protocol):
    """Files by path; each call raises ArchiveAway where it cannot be done, and Unsound where one file is the cause."""

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
        with _telling(path, self._is_there):
            return (self._root / path).read_bytes()

    def open(self, path: str) -> IO[bytes]:
        """See Bucket."""
        with _telling(path, self._is_there):
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

    def _is_there(self, _: Exception) -> bool:
        return self._root.is_dir()


class S3Bucket:
    """A bucket of an S3-compatible store, below a prefix."""

    def __init__(self, url: str, settings: S3Settings) -> None:
        """Create it; nothing is asked yet. OSError where the file of the secret cannot be read."""
        import obstore.store  # noqa: PLC0415 - an optional extra

        at = urlsplit(url)
        given: dict[str, Any] = {"region": settings.region, "prefix": at.path.strip("/") or None}
        given |= {"client_options": dict(_PATIENCE), "retry_config": _RETRIES}
        if settings.endpoint is not None:
            given["endpoint"] = settings.endpoint
            given["client_options"]["allow_http"] = settings.endpoint.startswith("http://")
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
        with _telling(path, _is_of_the_file):
            return bytes(self._obstore.get(self._store, path).bytes())

    def open(self, path: str) -> IO[bytes]:
        """See Bucket."""
        with _telling(path, _is_of_the_file):
            size = self._obstore.head(self._store, path)["size"]
        return BufferedReader(_Ranges(self._read, path, size), _READ_AHEAD)

    def _read(self, path: str, start: int, end: int) -> bytes:
        with _telling(path):
            return bytes(self._obstore.get_range(self._store, path, start=start, end=end))

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


class _Ranges(RawIOBase):
    """A file of a bucket, of which ranges are read as they are asked for."""

    def __init__(self, read: Callable[[str, int, int], bytes], path: str, size: int) -> None:
        self._read = read
        self._path = path
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """See RawIOBase."""
        return True

    def seekable(self) -> bool:
        """See RawIOBase."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """See RawIOBase."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, into: Any, /) -> int:
        """See RawIOBase."""
        end = min(self._at + len(into), self._size)
        if end <= self._at:
            return 0
        data = self._read(self._path, self._at, end)
        into[: len(data)] = data
        self._at += len(data)
        return len(data)


def bucket_at(place: str, settings: S3Settings) -> Bucket:
    """Return the bucket at ``s3://bucket/prefix``, or the folder of that path."""
    return S3Bucket(place, settings) if urlsplit(place).scheme == S3 else Folder(Path(place))


def _is_of_the_file(error: Exception) -> bool:
    """Tell whether a server answered, and does not have the file."""
    return isinstance(error, FileNotFoundError)


def _of_the_place(_: Exception) -> bool:
    return False


@contextmanager
def _telling(path: str, is_of_the_file: Callable[[Exception], bool] = _of_the_place) -> Iterator[None]:
    """Tell the path that could not be reached, and what kind of fault it was; never what a server said."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith("obstore"):
            raise
        if is_of_the_file(error):
            raise Unsound(path, Fault.AWAY, f"cannot be read: {type(error).__name__}") from error
        raise ArchiveAway(f"the archive's {path or 'list'} cannot be reached: {type(error).__name__}") from error


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
