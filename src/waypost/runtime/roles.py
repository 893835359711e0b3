"""Roles: the part that a process takes in the work of a service."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A role of a process. Of the roles from ``recorder`` on, one process at a time does the work, unless noted."""

    API = "api"
    """Takes requests, and holds live connections."""
    GATEWAY = "gateway"
    """Holds live connections, where that is apart from taking requests."""
    WORKER = "worker"
    """Routes and delivers."""
    ROUTER = "router"
    """Finds out whom a notification is for, where that is apart from delivering."""
    DELIVERER = "deliverer"
    """Delivers what was routed, where that is apart from it."""
    RELAY = "relay"
    """Publishes the outbox to topics that others read, where it is; several may at once."""
    RECORDER = "recorder"
    """Writes on the ledger what the log says; where that is on PostgreSQL, all that have the role share the log."""
    REPORT = "report"
    """Tells the registry of devices what was settled."""
    EXPAND = "expand"
    """Walks bulk jobs."""
    SWEEP = "sweep"
    """Clears away what is over."""


CRITICAL_ROLES = frozenset({Role.API, Role.GATEWAY, Role.WORKER, Role.ROUTER, Role.DELIVERER})
"""The roles that a critical worker has of those of its service: it does nothing beside its lane but take requests."""
