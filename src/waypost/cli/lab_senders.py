"""Waypost itself as what ``waypost lab check`` checks: served with the settings that its senders need in the lab."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import aiohttp

from waypost.client.asynchronous import AsyncClient
from waypost.client.types import Submission, SubmittedDevice
from waypost.lab.counterparts import Account, counterparts
from waypost.lab.email import CALLBACK_PASSWORD_FILE
from waypost.runtime.python import MODULE

APP = "check"
SETTLED_S = 60.0
"""Seconds for what the round before sent."""
FORGOTTEN_S = 10.0
"""Seconds for what was learnt of an address to come to the registry."""
_POLL_S = 0.02


class SendersUnderCheck:
    """Some senders that are installed, by channel, in a Waypost of their own: the service of a check, and who sends."""

    def __init__(self, channels: Sequence[str], lab: Path, folder: Path) -> None:
        """Find their counterparts; *folder* is for what the service keeps, *lab* is the lab's own.

        Raises ValueError for a channel that none has an account for.
        """
        accounts = {each.account.channel: (each.name, each.account) for each in counterparts() if each.account}
        unknown = set(channels) - accounts.keys()
        if unknown:
            known = ", ".join(sorted(accounts))
            raise ValueError(f"no sender {', '.join(sorted(unknown))} with an account in the lab; there are {known}")
        self._accounts: dict[str, Account] = dict(accounts[channel] for channel in channels)
        self._lab, self._folder = lab.resolve(), folder.resolve()
        self._sent: list[tuple[str, str]] = []
        """Users and ids of the notifications of the round before."""

    @property
    def gateways(self) -> tuple[str, ...]:
        """The gateways that they send to."""
        return tuple(self._accounts)

    @property
    def service(self) -> str:
        """The command that serves."""
        config = ("--config", str(self._folder / "waypost.yaml"))
        key = shlex.join([*MODULE, "waypost.cli", "keys", "create", "--app", APP, "--caller", APP, *config])
        serve = shlex.join([*MODULE, "waypost.cli", "serve", "--json", *config])
        own = " ".join(name for name in os.environ if name.startswith("WAYPOST_"))  # they would go over our settings
        return f"unset {own or '_'}; {key} > {shlex.quote(str(self._key_file))} && exec {serve}"

    @property
    def _key_file(self) -> Path:
        return self._folder / "key"

    def configure(self, environment: Mapping[str, str]) -> None:
        """Write the settings, once the lab has its addresses."""
        sections = {
            account.channel: account.settings(self._lab, environment[f"LAB_{gateway.upper()}_URL"]) | account.prompt
            for gateway, account in self._accounts.items()
        }
        retry = {"default": {"max_retries": 20, "base_ms": 100, "cap_ms": 1000, "jitter": "full"}}
        settings = {
            "store": f"sqlite:///{self._folder / 'waypost.db'}",
            "listen": "127.0.0.1:0",
            "workers": 1,
            "apps": {APP: {**sections, "retry": retry}},
        }
        (self._folder / "waypost.yaml").write_text(json.dumps(settings, indent=2))

    async def send(self, environment: Mapping[str, str]) -> None:
        """Register the targets in the first round, and tell each of them; what was sent before has come to its end."""
        targets = json.loads(Path(environment["LAB_TARGETS_FILE"]).read_bytes())  # noqa: ASYNC240 - small, and local
        url = json.loads(Path(environment["LAB_SERVICE_OUTPUT"]).read_bytes().partition(b"\n")[0])["url"]  # noqa: ASYNC240 - as above
        async with AsyncClient(url, self._key_file.read_text().strip()) as waypost:
            if environment["LAB_ROUND"] == "1":
                self._sent = []
                for target in targets:
                    await self._register(waypost, target)
            for user, sent in self._sent:
                await _ended(waypost, user, sent)
            if bounce := environment.get("LAB_BOUNCE_FILE"):
                await self._hand_in(url, Path(bounce).read_bytes())  # noqa: ASYNC240 - as above
                await _forgotten(waypost, targets[0]["name"])
            told = [{"user_id": each["name"], "title": environment["LAB_TEXT"]} for each in targets]
            for one, target in zip(told, targets, strict=True):
                one["channels"] = [self._accounts[target["gateway"]].channel]
            answer = await waypost.send_batch(cast(list[Submission], told))
            users = [target["name"] for target in targets]
            self._sent = [
                (user, result["notification"]["id"]) for user, result in zip(users, answer["results"], strict=True)
            ]

    async def _hand_in(self, url: str, bounce: bytes) -> None:
        """Post a bounce as whoever reads the mailbox of bounces does."""
        password = (self._lab / CALLBACK_PASSWORD_FILE).read_text().strip()
        async with (
            aiohttp.ClientSession(auth=aiohttp.BasicAuth("lab", password), raise_for_status=True) as session,
            session.post(
                f"{url}/callbacks/{APP}/email/default", data=bounce, headers={"content-type": "message/rfc822"}
            ),
        ):
            pass

    async def _register(self, waypost: AsyncClient, target: dict[str, Any]) -> None:
        keys = (target.get("subscription") or {}).get("keys")
        device: SubmittedDevice = {"platform": self._accounts[target["gateway"]].platform, "token": target["token"]}
        if keys:
            device["keys"] = keys
        await waypost.add_device(target["name"], "d", device)


@contextlib.contextmanager
def senders_under_check(channels: Sequence[str], lab: Path) -> Iterator[SendersUnderCheck]:
    """Open a folder in that of the *lab* for what the service keeps, and remove it in the end."""
    lab.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=lab, prefix="check-") as folder:
        yield SendersUnderCheck(channels, lab, Path(folder))


async def _ended(waypost: AsyncClient, user: str, sent: str) -> None:
    """Wait until a notification has come to its end, and until the registry knows what was learnt of the address."""
    receipts = (await waypost.wait(sent, SETTLED_S))["receipts"]
    if any(receipt["reason"] == "gone" for receipt in receipts):
        await _forgotten(waypost, user)


async def _forgotten(waypost: AsyncClient, user: str) -> None:
    """Wait until the registry has forgotten the address of a user; where it does not, the verdict says so."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FORGOTTEN_S):
            while (await waypost.devices(user))["items"]:  # noqa: ASYNC110 - a process is asked from outside
                await asyncio.sleep(_POLL_S)
