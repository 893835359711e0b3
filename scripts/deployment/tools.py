"""The tools, built or installed into .cache/deployment at the first use: Helm, kubeconform, Compose's own reader."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache" / "deployment"
_HERE: Final = Path(__file__).parent
_GO: Final = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.19.5",
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0",
    "cmd": "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
}
"""Programs by their name, each pinned; Go's checksum database has their hashes."""
_SCHEMAS: Final = "kubernetes-validate==1.37.0"
"""The package that has the schemas of Kubernetes, since nothing else may be downloaded here."""
_DEFINITIONS: Final = "/api/_definitions.json#"


def program(name: str) -> Path:
    """Return a program of Go's, built when it is not there: Helm takes some minutes."""
    go = shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/go/bin"]))
    place = CACHE / _GO[name].rpartition("@")[2]
    if not (place / name).exists():
        if go is None:
            sys.exit("no Go: apt-get install golang-go")
        print(f"building {_GO[name]} …", flush=True)
        subprocess.run([go, "install", _GO[name]], env=os.environ | {"GOBIN": str(place)}, check=True)
    return place / name


def models() -> Path:
    """Return the folder that has the schemas of operators, from npm."""
    place = CACHE / "models"
    if not (place / "node_modules").exists():
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(_HERE / "package.json", place)
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--silent")
        subprocess.run(["npm", "install", *options], cwd=place, check=True)
    return place


def schemas(version: str) -> str:
    """Return where kubeconform finds the strict schemas of a Kubernetes, as it has such places written."""
    place = CACHE / "schemas" / version
    if not place.exists():
        _write_schemas(_wheel(), version, place)
    return f"{place}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


def _wheel() -> Path:
    found = [*CACHE.glob("kubernetes_validate-*.whl")]
    if not found:
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            CACHE,
            _SCHEMAS,
        ]
        subprocess.run(pip, check=True)
        found = [*CACHE.glob("kubernetes_validate-*.whl")]
    return found[0]


def _write_schemas(wheel: Path, version: str, place: Path) -> None:
    """Make each schema stand alone: the common definitions go into it, since kubeconform follows no such reference."""
    folder = f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict/"
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            name.removeprefix(folder): archive.read(name).decode().replace(_DEFINITIONS, "#")
            for name in archive.namelist()
            if name.startswith(folder)
        }
    common = json.loads(texts.pop("_definitions.json"))["$defs"]
    made = place.with_suffix(".new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for name in _KINDS:
        schema = json.loads(texts[f"{name}.json"])
        schema.pop("$id", None)
        (made / f"{name}.json").write_text(json.dumps(schema | {"$defs": common}))
    made.rename(place)


_KINDS: Final = (
    "configmap-v1",
    "service-v1",
    "deployment-apps-v1",
    "statefulset-apps-v1",
    "poddisruptionbudget-policy-v1",
    "horizontalpodautoscaler-autoscaling-v2",
    "ingress-networking-v1",
)
"""The kinds that the chart has; another one is refused for want of its schema."""
