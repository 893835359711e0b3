"""Credentials and certificates that are replaced while notifications are sent with them."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
import yaml

from tests.journeys.balance import balance
from tests.journeys.harness import Service, running, until
from tests.journeys.load import called

pytestmark = pytest.mark.asyncio
ALL = ["demo/apns", "demo/fcm", "demo/webpush"]


async def told(service: Service, event: str, credentials: list[str]) -> None:
    """Return when both workers have said *event* of each of *credentials*."""

    async def said() -> bool:
        lines = [(line["credential"], line["worker"]) for line in service.log(event)]
        return {(name, worker) for name in credentials for worker in (0, 1)} <= set(lines)

    await until(said, f"{event} of {credentials}")


async def test_keys_are_replaced_under_load_and_nothing_fails(tmp_path: Path, rng: random.Random) -> None:
    """A broken key first, which changes nothing; then new ones, after which Apple takes the old one no more."""
    async with running(tmp_path, workers=2) as service, called(service, rng, users=8, width=4) as load:
        await load.grown(30)
        made = service.lab.directory
        key_file = made / "AuthKey.p8"
        key_file.write_text("-----BEGIN PRIVATE KEY-----\nhalf of")
        os.kill(service.pid, signal.SIGHUP)
        await told(service, "credential.refused", ALL[:1])
        await load.grown(30)
        new = {"key_id": "NEWKEY1234", "team_id": "FGHIJ67890"}
        answer = await service.lab.ask("POST", "/apns/keys", {**new, "topics": ["com.example.demo"]})
        key_file.write_text(answer["private_key"])
        tree = yaml.safe_load(service.config_path.read_text())
        tree["apps"]["demo"]["apns"] |= new
        service.config_path.write_text(yaml.safe_dump(tree))
        for name in ("fcm.json", "vapid.pem"):
            with (made / name).open("a") as file:
                file.write("\n")
        os.kill(service.pid, signal.SIGHUP)
        await told(service, "credential.reloaded", ALL)
        await load.grown(30)
        await service.lab.ask("DELETE", "/apns/keys/ABCDE12345")
        await load.grown(60)
        load.stop()
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        assert set(result.statuses) == {"sent"}
        assert "half of" not in (tmp_path / "serve.log").read_text()
