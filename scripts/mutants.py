"""The table of planted faults in tests/mutants, and how one is planted in a copy of the tree."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path("tests/mutants")
PACKAGE = Path("src/waypost")


class Misfit(Exception):
    """A row does not fit the source: its text is gone, stands there more than once, or what it becomes is no Python."""


@dataclass(frozen=True)
class Mutant:
    """A fault that somebody could make, and the tests that must notice it."""

    name: str
    why: str
    """The harm to users that the fault would do."""
    file: str
    """Below src/waypost."""
    text: str
    """As it stands in the file, or in *inside*, exactly once."""
    becomes: str
    tests: tuple[str, ...]
    """Pytest's names of files or single tests."""
    inside: str = ""
    """The function or class to look in, such as ``SqlWork.release``; "" is the whole file."""


def read_table(root: Path) -> list[Mutant]:
    """Read every row, file by file; Misfit where two have one name or a field is wrong."""
    found: dict[str, Mutant] = {}
    for path in sorted((root / TABLE).glob("*.toml")):
        for name, row in tomllib.loads(path.read_text()).items():
            if name in found:
                raise Misfit(f"{name}: two rows have this name")
            try:
                found[name] = Mutant(name, **row | {"tests": tuple(row["tests"])})
            except (TypeError, KeyError) as wrong:
                raise Misfit(f"{name}: {wrong}") from None
    return list(found.values())


def plant(mutant: Mutant, root: Path) -> str:
    """Write the fault into the tree at *root*; the source as it was, to put back."""
    path = root / PACKAGE / mutant.file
    source = path.read_text()
    put(path, planted(mutant, source))
    return source


def put(path: Path, source: str) -> None:
    """Write *source*; what was compiled of the file before goes, for its time and size may be the same."""
    path.write_text(source)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def planted(mutant: Mutant, source: str) -> str:
    """Return *source* with the fault; Misfit where the row does not fit it."""
    lines = source.splitlines(keepends=True)
    first, last = _lines_of(mutant, source) if mutant.inside else (1, len(lines))
    before, part, after = ("".join(each) for each in (lines[: first - 1], lines[first - 1 : last], lines[last:]))
    count = part.count(mutant.text)
    if count != 1:
        place = f"{mutant.file}, {mutant.inside}" if mutant.inside else mutant.file
        raise Misfit(f"{mutant.name}: its text stands {count} times in {place}, not once")
    changed = before + part.replace(mutant.text, mutant.becomes) + after
    try:
        tree = ast.parse(changed)
    except SyntaxError as error:
        raise Misfit(f"{mutant.name}: what it becomes is no Python: {error}") from None
    if ast.dump(tree) == ast.dump(ast.parse(source)):
        raise Misfit(f"{mutant.name}: it changes nothing")
    return changed


def _lines_of(mutant: Mutant, source: str) -> tuple[int, int]:
    """The first and last line of the function or class that the row names."""
    node: ast.AST = ast.parse(source)
    for name in mutant.inside.split("."):
        found = next((child for child in _definitions(node) if child.name == name), None)
        if found is None:
            raise Misfit(f"{mutant.name}: {mutant.file} has no {mutant.inside}")
        node = found
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    assert node.end_lineno is not None
    return node.lineno, node.end_lineno


def _definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
