"""The stacks of deploy/compose: each configuration, as it stands there, sends notifications on the real servers."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import convert

from scripts.services.shared import ROOT
from tests.contract.registries import wake_ups_closed
from tests.journeys.balance import listed
from tests.journeys.harness import running, until
from tests.journeys.load import Audience, Load
from waypost.stores.cassandra.schema import migrate
from waypost.stores.cassandra.settings import CassandraSettings

COMPOSE = ROOT / "deploy" / "compose"
STACKS = sorted(path.stem for path in COMPOSE.glob("*.yaml") if path.stem != "common")
ON_DISK = "sqlite:////var/lib/waypost/waypost.db"
OWN_IMAGE = "waypost:local"
PINNED = re.compile(r"[a-z/]+:\d+\.?[\d.]*")
SENT = 20


def read(stack: str) -> Any:
    """The file of a stack."""
    return yaml.safe_load((COMPOSE / f"{stack}.yaml").read_text())


@pytest.mark.asyncio
@pytest.mark.parametrize("stack", [pytest.param(name, marks=pytest.mark.engines) for name in STACKS])
async def test_a_stack_sends_what_it_accepted(stack: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Only the addresses of the servers are others here."""
    settings = pointed_here(yaml.safe_load(read(stack)["configs"]["waypost"]["content"]), request)
    if "cassandra" in settings:
        with wake_ups_closed():
            await migrate(convert(settings["cassandra"], CassandraSettings))  # tables take longer than a start may
    async with running(tmp_path, workers=2, **settings) as service:
        audience = Audience(service)
        await audience.register(4)
        await Load(service, audience, random.Random(1)).run(2, limit=SENT)

        async def are_finished() -> bool:
            details = await listed(service)
            return len(details) >= SENT and all(each["status"] == "sent" for each in details.values())

        await until(are_finished, "everything is sent")


def pointed_here(config: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    """The configuration with the servers of the tests; where it listens and its apps are the test's."""
    for name in ("listen", "apps"):
        del config[name]
    if config["store"] == ON_DISK:
        del config["store"]
    else:
        config["store"] = request.getfixturevalue("postgres_url")
    if "cassandra" in config:
        nodes = request.getfixturevalue("cassandra")
        keyspace = request.getfixturevalue("cassandra_keyspace")
        config["cassandra"] |= {"hosts": [nodes.address(nodes.node(1))], "port": nodes.ports[0], "keyspace": keyspace}
    if "redis" in config:
        config["redis"] |= {"url": request.getfixturevalue("redis_url")}
    if "kafka" in config:
        prefix = request.getfixturevalue("kafka_prefix")
        config["kafka"] |= {"bootstrap": request.getfixturevalue("kafka_bootstrap"), "prefix": prefix, "group": prefix}
    return config


@pytest.mark.parametrize("stack", STACKS)
def test_images_are_pinned_by_version(stack: str) -> None:
    """A stack is the same tomorrow."""
    images = [service["image"] for service in read(stack)["services"].values() if "image" in service]
    assert all(PINNED.fullmatch(image) for image in images), images


def test_the_image_runs_what_the_stacks_extend() -> None:
    """Waypost itself is built from this clone."""
    (service,) = read("common")["services"].values()
    assert service["image"] == OWN_IMAGE
    assert (ROOT / service["build"]["dockerfile"]).exists()


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_gives_its_configuration_the_variables_that_it_names(stack: str) -> None:
    """A name that nobody sets keeps a container from starting."""
    config = read(stack)["configs"]["waypost"]["content"]
    given = read(stack)["services"]["waypost"].get("environment", {})
    assert set(re.findall(r"\$\$\{(\w+)\}", config)) == set(given)


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_can_be_watched(stack: str) -> None:
    """Prometheus and Grafana come with a profile, and the first asks the stack's own service."""
    assert read(stack)["include"] == ["monitoring/compose.yaml"]
    folder = COMPOSE / "monitoring"
    watching = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    assert all(each["profiles"] == ["monitoring"] for each in watching.values())
    mounted = [each.split(":")[0] for service in watching.values() for each in service["volumes"] if each[0] == "."]
    assert len(mounted) >= 4
    assert all((folder / path).exists() for path in mounted), mounted
    ours = yaml.safe_load((folder / "prometheus.yaml").read_text())
    alone = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yaml").read_text())
    (job,) = ours["scrape_configs"]
    (host, port) = job["static_configs"][0].pop("targets")[0].split(":")
    del alone["scrape_configs"][0]["static_configs"][0]["targets"]
    assert (ours, host, port) == (alone, "waypost", "8080")
    assert host in read(stack)["services"]
