"""The Python stub of the gRPC API is what its proto file generates."""

from pathlib import Path

from scripts.protos import generate
from tests.architecture.trees import ROOT


def test_the_stub_is_up_to_date(tmp_path: Path) -> None:
    """Whoever edits a proto file runs `make protos`."""
    generate(tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*_pb2*")}
    kept = {path: (ROOT / "src" / path).read_bytes() for path in made}
    assert made
    assert made == kept
