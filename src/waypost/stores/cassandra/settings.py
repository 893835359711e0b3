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
    """A Cassandra cluster that keeps the registry of devices."""

    hosts: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Addresses of some nodes; the others are discovered through them."""
    port: Annotated[int, Meta(ge=1, le=65_535)] = 9042
    """The port of the native protocol, the same on every node."""
    keyspace: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,47}\Z")] = "waypost"
    """The keyspace. `waypost migrate` creates it if it is missing and never changes the replication of an existing
    one."""
    replication_factor: Annotated[int, Meta(ge=1)] = 3
    """Replicas of each row in the data centre. Below 3, rows are unavailable while a node is down."""
    data_center: str | None = None
    """The data centre to send requests to. Default: that of the first host that answers."""
    username: str | None = None
    """The user name, if the cluster asks for one; with `password`."""
    password: str | None = None
    """A secret: `${NAME}` or `file:PATH`."""
    tls: bool = False
    """Whether to speak TLS to the nodes, each of which proves its address."""
    ca_file: str | None = None
    """The authorities, as PEM, that sign the nodes' certificates; `tls` needs them."""
    read_consistency: Consistency = Consistency.LOCAL_ONE
    """The consistency of look-ups: `LOCAL_ONE` works as long as one replica does; a quorum never returns replaced
    rows."""
    write_consistency: Consistency = Consistency.LOCAL_QUORUM
    """The consistency of registrations and all other changes of devices."""
    request_timeout_s: Annotated[float, Meta(gt=0, le=60)] = 2.0
    """Seconds that one request may take before it is retried once, then given up."""
