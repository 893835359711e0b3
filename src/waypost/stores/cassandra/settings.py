"""Settings of Cassandra."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct


class Consistency(StrEnum):
    """The number of replicas that answer before Cassandra does; see its own documentation of consistency levels."""

    ONE = "ONE"
    LOCAL_ONE = "LOCAL_ONE"
    QUORUM = "QUORUM"
    LOCAL_QUORUM = "LOCAL_QUORUM"
    ALL = "ALL"

    @property
    def is_local(self) -> bool:
        """Whether other data centres are not waited for."""
        return self in (Consistency.LOCAL_ONE, Consistency.LOCAL_QUORUM)


class CassandraSettings(Struct, frozen=True, kw_only=True):
    """A Cassandra cluster that keeps the registry of devices, or copies of feeds."""

    hosts: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Addresses of some nodes."""
    port: Annotated[int, Meta(ge=1, le=65_535)] = 9042
    """The port of every node."""
    keyspace: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,47}\Z")] = "waypost"
    """`waypost migrate` creates it if missing, and leaves an existing one's replication."""
    replication_factor: Annotated[int, Meta(ge=1)] = 3
    """Copies of each row; below 3, rows are unavailable while a node is down."""
    data_center: str | None = None
    """The data centre to ask. Unset: that of the first host that answers."""
    username: str | None = None
    """With `password`."""
    password: str | None = None
    """`${NAME}` or `file:PATH`."""
    tls: bool = False
    """Whether to speak TLS to the nodes; needs ``ca_file``."""
    ca_file: str | None = None
    """The authorities (PEM) that sign the nodes' certificates."""
    read_consistency: Consistency = Consistency.LOCAL_ONE
    """Of look-ups: `LOCAL_ONE` needs one copy; a quorum never returns replaced rows."""
    write_consistency: Consistency = Consistency.LOCAL_QUORUM
    """Of registrations and all other changes, and of the copies of feeds."""
    request_timeout_s: Annotated[float, Meta(gt=0, le=60)] = 2.0
    """Seconds for one request; it is retried once."""

    @property
    def reads_its_writes(self) -> bool:
        """Whether what was written is seen by whoever reads as it was written."""
        return self.write_consistency not in (Consistency.ONE, Consistency.LOCAL_ONE)
