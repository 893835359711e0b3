"""The fuzzer's corpus, replayed: what once was interesting to it stays without a fault."""

from pathlib import Path

import pytest

from fuzz.targets import TARGETS

CORPUS = Path(__file__).parents[3] / "fuzz" / "corpus"


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_corpus_is_taken(name: str) -> None:
    """Each file through its target; there are some."""
    files = sorted((CORPUS / name).iterdir())
    assert len(files) >= 10
    for file in files:
        TARGETS[name](file.read_bytes())
