"""A real Prometheus that watches a service by the shipped rules, twenty times as fast."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
import yaml

from scripts.observability.files import RULES
from tests.journeys.harness import Service, until
from tests.journeys.processes import killed

SECONDS_OF_A_MINUTE = 3
"""What a minute of the rules lasts here."""


def quickened(rules: str) -> Any:
    """Give the rules with their windows and patience shortened, and all else as it is."""
    tree = yaml.safe_load(rules)
    for group in tree["groups"]:
        for rule in group["rules"]:
            rule["expr"] = re.sub(r"\[(\d+)m\]", lambda window: f"[{_seconds(window[1])}]", rule["expr"])
            if rule.get("for", "").endswith("m"):
                rule["for"] = _seconds(rule["for"][:-1])
    return tree


def _seconds(minutes: str) -> str:
    return f"{int(minutes) * SECONDS_OF_A_MINUTE}s"


class Watch:
    """A Prometheus process; it ends with the block."""

    def __init__(self, service: Service) -> None:
        self._folder = service.directory / "prometheus"
        self._target = urlsplit(service.url).netloc
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None

    async def __aenter__(self) -> Self:
        """Start it, and wait until it has read metrics."""
        self._start()
        await until(lambda: self.value('up{job="waypost"} == 1'), "metrics that Prometheus has read")
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it."""
        killed(self._process)

    def _start(self) -> None:
        program = shutil.which("prometheus")
        assert program is not None, "no Prometheus: apt-get install prometheus"
        self._folder.mkdir()
        (self._folder / "alerts.yaml").write_text(yaml.safe_dump(quickened(RULES.read_text())))
        shipped = yaml.safe_load((RULES.parent / "prometheus.yaml").read_text())
        shipped["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        shipped["scrape_configs"][0]["static_configs"] = [{"targets": [self._target]}]
        config = self._folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump(shipped))
        data, listen = self._folder / "data", f"127.0.0.1:{self._port}"
        command = [
            program, f"--config.file={config}", f"--storage.tsdb.path={data}", f"--web.listen-address={listen}"
        ]  # fmt: skip
        with (self._folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, text=True)

    async def value(self, expression: str) -> str | None:
        """Evaluate *expression* now; None where it gives nothing."""
        found = (await self._ask("query", query=expression))["result"]
        return str(found[0]["value"][1]) if found else None

    async def raised(self) -> dict[str, str]:
        """Name the alerts that are raised now, each with where the runbook speaks of it."""
        alerts = (await self._ask("alerts"))["alerts"]
        return {
            each["labels"]["alertname"]: each["annotations"]["runbook"] for each in alerts if each["state"] == "firing"
        }

    async def is_raised(self, name: str) -> bool:
        """Wait until the alert is raised."""

        async def there() -> bool:
            return name in await self.raised()

        return bool(await until(there, f"the alert {name}"))

    async def is_over(self, name: str) -> bool:
        """Wait until the alert is raised no longer."""

        async def gone() -> bool:
            return name not in await self.raised()

        return bool(await until(gone, f"the end of the alert {name}"))

    async def _ask(self, what: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}"
        async with aiohttp.request("GET", url, params=query) as answer:
            if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:  # it is starting
                return {"result": [], "alerts": []}
            return (await answer.json())["data"]
