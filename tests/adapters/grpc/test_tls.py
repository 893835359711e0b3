"""gRPC over TLS: who gets in, and certificates that change while it serves."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.adapters.grpc.service import Door, served, shown
from tests.certificates import Authority
from waypost.runtime.listening import TlsSettings
from waypost.runtime.tls import ServerTls
from waypost.v1.notifications_pb2_grpc import NotificationsStub

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def channel(door: Door, authority: Authority, own: tuple[Path, Path] | None = None) -> AsyncIterator[Any]:
    certificate, key = (None, None) if own is None else (own[0].read_bytes(), own[1].read_bytes())
    credentials = grpc.ssl_channel_credentials(authority.file.read_bytes(), key, certificate)
    alone = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own
    async with grpc.aio.secure_channel(f"localhost:{door.server.port}", credentials, alone) as made:
        yield made


async def submit(door: Door, through: Any, user: str) -> str:
    stub: Any = NotificationsStub(through)
    answer = await stub.Submit(shown(user), metadata=door.key, timeout=60)
    return str(answer.id)


async def refused(door: Door, authority: Authority, own: tuple[Path, Path] | None = None) -> None:
    async with channel(door, authority, own) as through:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await submit(door, through, "nobody")
    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_only_a_client_of_the_authority_gets_in(tmp_path: Path) -> None:
    servers, clients = Authority(tmp_path, "servers"), Authority(tmp_path, "clients")
    certificate, key = map(str, servers.issue("server"))
    settings = TlsSettings(certificate_file=certificate, key_file=key, client_ca_file=str(clients.file))
    async with served(tls=ServerTls("grpc.tls", settings)) as door:
        own = clients.issue("caller")
        await refused(door, servers)
        await refused(door, servers, servers.issue("stranger"))
        await refused(door, clients, own)
        async with channel(door, servers, own) as through:
            assert await submit(door, through, "user-1")


async def test_new_certificates_count_for_new_connections_while_old_ones_go_on(tmp_path: Path) -> None:
    """The old connection trusts the old authority alone, which no longer signs for the server."""
    before, after = Authority(tmp_path, "before"), Authority(tmp_path, "after")
    certificate, key = map(str, before.issue("server"))
    tls = ServerTls("grpc.tls", TlsSettings(certificate_file=certificate, key_file=key))
    async with served(tls=tls) as door, channel(door, before) as old:
        await submit(door, old, "user-1")
        for new, file in zip(after.issue("renewed"), tls.made_of()[1], strict=True):
            os.replace(new, file)
        await tls.reload()
        async with channel(door, after) as new_channel:
            await submit(door, new_channel, "user-2")
        await refused(door, before)
        await submit(door, old, "user-3")
