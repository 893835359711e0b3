"""Temporary copies of the source tree, in which a test may break the rules."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINT = ["from importlinter.cli import lint_imports_command", "lint_imports_command()"]


@dataclass(frozen=True)
class Tree:
    """A copy of the source with its import contracts; *src* holds the package."""

    src: Path

    def plant(self, module: str, line: str) -> None:
        """Add *line* at the end of *module*, which is made if it does not exist."""
        path = self.src.joinpath(*module.split("."))
        place = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text('"""Planted by a test."""\n')
        (place.parent / "__init__.py").touch()
        with place.open("a") as source:
            source.write(f"\n{line}\n")

    def lint(self, *contracts: str) -> subprocess.CompletedProcess[str]:
        """Run import-linter on the copy in a process of its own; no *contracts* means all."""
        options = [f"--contract={contract}" for contract in contracts]
        return subprocess.run(
            [sys.executable, "-c", "\n".join(LINT), "--config", str(ROOT / "pyproject.toml"), "--no-cache", *options],
            cwd=self.src,
            env={"PYTHONPATH": str(self.src), "NO_COLOR": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )


def copy_tree(to: Path) -> Tree:
    """Copy the package's Python files below *to*."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src", to / "src", ignore=ignored, dirs_exist_ok=True)
    return Tree(to / "src")
