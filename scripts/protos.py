"""Generate the Python stub of the gRPC API (``waypost.v1``) from ``proto/``; a test holds it to be up to date."""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "proto"


def generate(into: Path) -> None:
    """Write the modules of every proto file below *into*, beside the package they belong to."""
    sources = [str(path.relative_to(PROTOS)) for path in sorted(PROTOS.rglob("*.proto"))]
    outputs = [f"--{kind}_out={into}" for kind in ("python", "pyi", "grpc_python")]
    includes = [f"-I{PROTOS}", f"-I{sysconfig.get_path('purelib')}"]  # the second has google/rpc/status.proto
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *includes, *outputs, *sources], check=True)


if __name__ == "__main__":
    generate(ROOT / "src")
