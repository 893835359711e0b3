"""Run every check of the source, show all their complaints, and fail if one of them failed."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"

CHECKS: dict[str, list[str | Path]] = {
    "format": [BIN / "ruff", "format", "--check", "--quiet", "."],
    "lint": [BIN / "ruff", "check", "--quiet", "."],
    "types": [BIN / "mypy", "--no-error-summary"],
    "imports": [BIN / "lint-imports", "--cache-dir", ".cache/imports"],
    "docs": [BIN / "python", "-m", "scripts.check_docs"],
}


def main() -> None:
    """Run the checks one after another; a passing one takes one line."""
    failed = [name for name, command in CHECKS.items() if not passes(name, command)]
    if failed:
        sys.exit(f"make check failed: {', '.join(failed)}")


def passes(name: str, command: list[str | Path]) -> bool:
    """Run one check; print its output only if it complains or warns."""
    started = time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    ok = ended.returncode == 0
    print(f"{name:8} {'ok' if ok else 'FAILED':7} {time.monotonic() - started:5.1f} s", flush=True)
    if not ok or "warning:" in ended.stdout:
        print(ended.stdout.rstrip(), flush=True)
    return ok


if __name__ == "__main__":
    main()
