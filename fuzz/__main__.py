"""`python -m fuzz TARGET [libFuzzer's arguments]`: a coverage-guided search, by atheris. `make fuzz` starts it."""

import sys

import atheris

with atheris.instrument_imports(include=["waypost.http2"]):
    from fuzz.targets import TARGETS


def main() -> None:
    """Run until libFuzzer ends."""
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


main()
