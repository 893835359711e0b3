"""The Helm chart as it was rendered for each profile: Kubernetes runs Waypost as Waypost needs it.

`make deploy-check` renders it and has Helm, kubeconform and the operators' schemas judge it; here stands what they
cannot know.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import fields

from scripts.deployment import chart
from scripts.observability.files import CHARTED, RULES
from tests.shows import shows
from waypost import __version__
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.entrypoints.rest.request_handler import OPERATING
from waypost.runtime.roles import Role
from waypost.stores.sql.settings import is_postgres
from waypost.telemetry import Metric

PROFILES = chart.names()
SECRETS = {"WAYPOST_DB_PASSWORD": "made-up", "STATE_DIRECTORY": "/var/lib/waypost"}
Resource = dict[str, Any]


def rendered(profile: str) -> list[Resource]:
    """The resources of a profile."""
    return [each for each in yaml.safe_load_all((chart.RENDERED / f"{profile}.yaml").read_text()) if each]


def of_kind(profile: str, *kinds: str) -> list[Resource]:
    """Those of some kinds."""
    return [each for each in rendered(profile) if each["kind"] in kinds]


def pods(profile: str) -> dict[str, Resource]:
    """The pods' specifications, by the name of what makes them."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in of_kind(profile, "Deployment", "StatefulSet")
    }


def configured(profile: str, folder: Path) -> Config:
    """The configuration that the pods read."""
    (text,) = [each["data"]["waypost.yaml"] for each in of_kind(profile, "ConfigMap")]
    (folder / "waypost.yaml").write_text(text)
    return load(folder / "waypost.yaml", SECRETS)


def roles_of(pod: Resource) -> set[str]:
    """What its process does; all where nothing is said."""
    said = [each.removeprefix("--roles=") for each in pod["containers"][0]["args"] if each.startswith("--roles=")]
    return {role for each in said for role in each.split(",")}


def test_what_stands_there_was_rendered_from_the_chart_as_it_is() -> None:
    """Whoever changes the chart runs `make deploy-check`."""
    assert len(PROFILES) == 3
    for profile in PROFILES:
        text = (chart.RENDERED / f"{profile}.yaml").read_text()
        assert text.startswith(chart.head(profile)), "run `make deploy-check`"
    assert yaml.safe_load((chart.CHART / "Chart.yaml").read_text())["appVersion"] == __version__


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_may_do_no_more_than_it_needs(profile: str) -> None:
    """Not root, a file system that is read-only but for its state and /tmp, no capability, no token of the cluster."""
    for pod in pods(profile).values():
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        written = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
        assert written == {"/var/lib/waypost", "/tmp"}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_has_the_time_to_drain(profile: str, tmp_path: Path) -> None:
    """It leaves the load balancer, drains, and ends, before it is killed."""
    drain_s = configured(profile, tmp_path).drain_timeout_s
    (most,) = [each.default for each in fields(Config) if each.name == "drain_timeout_s"]
    for pod in pods(profile).values():
        (container,) = pod["containers"]
        before_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        assert pod["terminationGracePeriodSeconds"] >= max(drain_s, most) + before_s + 15


@pytest.mark.parametrize("profile", PROFILES)
def test_probes_ask_what_every_process_answers(profile: str) -> None:
    """One that lives but cannot reach its store is not started again."""
    for pod in pods(profile).values():
        (container,) = pod["containers"]
        paths = {
            name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert set(paths.values()) <= OPERATING
        assert paths["livenessProbe"] == paths["startupProbe"] == "/health/live"
        assert paths["readinessProbe"] == "/health/ready"


@pytest.mark.parametrize("profile", PROFILES)
def test_every_role_is_somewhere_and_the_configuration_can_be_read(profile: str, tmp_path: Path) -> None:
    config = configured(profile, tmp_path)
    assert (config.listen.host, config.listen.port) == ("0.0.0.0", 8080)  # noqa: S104 - a pod's own network
    needed = {role for role in Role if config.why_not(role) is None} - {Role.GATEWAY}
    roles = [roles_of(pod) for pod in pods(profile).values()]
    assert set() in roles or needed <= set().union(*roles)
    for pod in pods(profile).values():
        (container,) = pod["containers"]
        sources = [each["secretRef"]["name"] for each in container.get("envFrom", [])]
        text = of_kind(profile, "ConfigMap")[0]["data"]["waypost.yaml"]
        assert bool(re.findall(r"\$\{\w+\}", text)) is bool(sources), "what it names, a Secret brings"
        assert "env" not in container
    if not is_postgres(config.store.url):
        ((name, _),) = pods(profile).items()
        (made,) = of_kind(profile, "StatefulSet")
        assert made["spec"]["replicas"] == 1 and made["spec"]["volumeClaimTemplates"], name


@shows("S3-74")
@pytest.mark.parametrize("profile", ["postgres-redis", "log"])
def test_it_runs_behind_a_load_balancer_and_scales_by_cpu_and_memory(profile: str) -> None:
    """Example settings are there for whoever takes requests and for whoever delivers."""
    deployed = {each["metadata"]["name"]: each for each in of_kind(profile, "Deployment")}
    (service,) = [each for each in of_kind(profile, "Service") if each["metadata"]["name"] == "waypost"]
    behind = [
        name
        for name, each in deployed.items()
        if service["spec"]["selector"].items() <= each["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert behind == ["waypost-api"]
    scaled = {}
    for each in of_kind(profile, "HorizontalPodAutoscaler"):
        targets = {metric["resource"]["name"]: metric["resource"]["target"] for metric in each["spec"]["metrics"]}
        assert all(target["type"] == "Utilization" for target in targets.values())
        scaled[each["spec"]["scaleTargetRef"]["name"]] = set(targets)
    for each in of_kind(profile, "ScaledObject"):
        scaled[each["spec"]["scaleTargetRef"]["name"]] = {trigger["type"] for trigger in each["spec"]["triggers"]}
    assert {"waypost-api", "waypost-worker"} <= scaled.keys() <= deployed.keys()
    assert all({"cpu", "memory"} <= metrics for metrics in scaled.values())
    for name in scaled:
        assert "replicas" not in deployed[name]["spec"], "whoever scales it says how many"
        (container,) = deployed[name]["spec"]["template"]["spec"]["containers"]
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), "shares are of what it asks for"
    kept = {
        each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        for each in of_kind(profile, "PodDisruptionBudget")
    }
    assert kept == {name.removeprefix("waypost-") for name in deployed}


def test_workers_are_scaled_by_a_metric_that_there_is() -> None:
    """By an age, of which the target is a value and not an average over pods."""
    (scaled,) = of_kind("postgres-redis", "ScaledObject")
    (trigger,) = [each for each in scaled["spec"]["triggers"] if each["type"] == "prometheus"]
    (named,) = re.findall(r"(waypost_\w+)\{", trigger["metadata"]["query"])
    assert named in {each.value[0] if isinstance(each.value, tuple) else str(each.value) for each in Metric}
    assert trigger["metricType"] == "Value"
    assert math.isfinite(float(trigger["metadata"]["threshold"]))


def test_the_rules_are_those_of_prometheus() -> None:
    """One home: the chart has a copy, and its resource is that."""
    assert CHARTED.read_text() == RULES.read_text()
    for profile in ("postgres-redis", "log"):
        (made,) = of_kind(profile, "PrometheusRule")
        assert made["spec"] == yaml.safe_load(RULES.read_text())
        (monitor,) = of_kind(profile, "ServiceMonitor")
        wanted = monitor["spec"]["selector"]["matchLabels"]
        (watched,) = [
            each for each in of_kind(profile, "Service") if wanted.items() <= each["metadata"]["labels"].items()
        ]
        assert watched["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "waypost", "WaypostDown looks for this job"
        assert monitor["spec"]["endpoints"][0]["path"] in OPERATING
