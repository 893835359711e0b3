"""The Helm chart: rendered by Helm for each profile, and judged by the schemas of what reads it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from scripts.deployment.tools import ROOT, models, program, schemas

CHART: Final = ROOT / "deploy" / "helm" / "waypost"
PROFILES: Final = ROOT / "deploy" / "helm" / "profiles"
RENDERED: Final = ROOT / "deploy" / "kubernetes"
KUBERNETES: Final = ("1.25.0", "1.31.0", "1.37.0")
"""The versions whose schemas must take it: the oldest that the chart names, and the newest there is."""
_OF_OPERATORS: Final = ("keda.sh/", "monitoring.coreos.com/")
_RESOURCES: Final = Path(__file__).with_name("resources.mjs")


def names() -> list[str]:
    """List the profiles."""
    return sorted(path.stem for path in PROFILES.glob("*.yaml"))


def stamp() -> str:
    """Return what the chart and its profiles are, as one hash: what was rendered from them says it."""
    digest = hashlib.sha256()
    for path in sorted([*CHART.rglob("*"), *PROFILES.glob("*.yaml")]):
        if path.is_file():
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def head(name: str) -> str:
    """Write the first lines of what was rendered."""
    return (
        f"# Rendered by Helm from deploy/helm/profiles/{name}.yaml: `make deploy-check` writes it. To apply without\n"
        f"# Helm, in the namespace waypost: docs/kubernetes.md.\n# chart {stamp()}\n"
    )


def render(name: str) -> str:
    """Have Helm lint the chart and render a profile, as an installation named waypost in the namespace waypost."""
    values = ["--values", str(PROFILES / f"{name}.yaml")]
    subprocess.run([program("helm"), "lint", "--quiet", "--strict", CHART, *values], check=True)
    options = ["--namespace", "waypost", "--kube-version", KUBERNETES[-1], *values]
    rendered = subprocess.run(
        [program("helm"), "template", "waypost", CHART, *options], check=True, capture_output=True, text=True
    )
    return head(name) + rendered.stdout


def judge(text: str) -> None:
    """Refuse what Kubernetes, KEDA or Prometheus's operator would refuse."""
    resources: list[dict[str, Any]] = [each for each in yaml.safe_load_all(text) if each]
    of_operators = [each for each in resources if each["apiVersion"].startswith(_OF_OPERATORS)]
    plain = yaml.safe_dump_all([each for each in resources if each not in of_operators])
    for version in KUBERNETES:
        place = ["-kubernetes-version", version, "-schema-location", schemas(version)]
        subprocess.run([program("kubeconform"), "-strict", "-summary", *place, "-"], input=plain, text=True, check=True)
    subprocess.run(["node", _RESOURCES, models()], input=json.dumps(of_operators), text=True, check=True)
