"""Check what the repository says: links work, every name the code can say is documented, nothing private leaks.

A complaint ends the check with 1; a warning is only shown. To have more names checked, add to `DOCUMENTED`.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import page as bench_page
from scripts import requirements
from waypost.bootstrap.features import sections
from waypost.bootstrap.registry import installed
from waypost.config.reference import settings
from waypost.domain.errors import ErrorCode
from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric

ROOT = Path(__file__).resolve().parent.parent
TEXT_SUFFIXES = {
    "",
    ".cfg",
    ".css",
    ".html",
    ".in",
    ".ini",
    ".js",
    ".json",
    ".mako",
    ".md",
    ".proto",
    ".py",
    ".service",
    ".sh",
    ".sql",
    ".toml",
    ".txt",
    ".typed",
    ".yaml",
    ".yml",
}  # fmt: skip - one line a letter would hide it
SKIPPED_FOLDERS = {"__pycache__", "build", "dist", "node_modules"}
SKIPPED_FILES = {".git", ".venv.lock"}
KEPT_DOT_FOLDERS = {".ci", ".github"}
README_LINES = 110
LONG_FILE_LINES = 350

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
URL_OR_INDEX = re.compile(r"://|--(?:extra-)?index-url|--find-links")
LINT_EXCEPTION = re.compile(r"#\s*(?:noqa\b(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?|type:\s*ignore(?:\[[\w,\s-]+\])?)(.*)")

FORBIDDEN = {
    "a package registry's host": re.compile(r"\b(?:pypi|pythonhosted|npmjs|crates|rubygems)" + r"\.(?:org|com|io)\b"),
    "a path of one machine": re.compile(r"(?<![\w.~}*-])/(?:work|root|Users|home)" + r"/\w"),
    "a number of some tracker": re.compile(r"\bissue" + r" #?\d{1,2}\b", re.IGNORECASE),
}


def error_codes() -> set[str]:
    """Every code of a problem answer."""
    return {code.value for code in ErrorCode}


def events() -> set[str]:
    """Every event that is logged."""
    return {event.label for event in Event}


def metrics() -> set[str]:
    """Every metric."""
    return {metric.label for metric in Metric}


def configuration_keys() -> set[str]:
    """Every setting's path."""
    return {setting.path for setting in settings(installed(), sections())}


# What is documented where: a page must hold each name its functions give, in backticks.
DOCUMENTED: dict[str, tuple[Callable[[], set[str]], ...]] = {
    "docs/configuration.md": (configuration_keys,),
    "docs/errors.md": (error_codes,),
    "docs/telemetry.md": (events, metrics),
}


def main() -> None:
    """Print complaints and warnings, one a line with its place; exit with 1 if there is a complaint."""
    sources = dict(read_sources())
    complaints = [
        *broken_links(sources),
        *undocumented_names(),
        *forbidden_texts(sources),
        *named_indexes(sources),
        *unexplained_exceptions(sources),
        *readme_too_long(sources),
        *requirements_written_by_hand(),
        *bench_page.stale(),
    ]
    for warning in long_files(sources):
        print(f"warning: {warning}")
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


def read_sources() -> Iterator[tuple[Path, str]]:
    """Give every text file of the repository with its path relative to the root."""
    for path in walk(ROOT):
        if path.suffix in TEXT_SUFFIXES:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8", errors="replace")


def walk(folder: Path) -> Iterator[Path]:
    """Give the files below *folder* except what tools and runs leave behind."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name not in KEPT_DOT_FOLDERS
            if not hidden and path.name not in SKIPPED_FOLDERS and not path.name.endswith(".egg-info"):
                yield from walk(path)
        elif path.is_file() and path.name not in SKIPPED_FILES:
            yield path


def broken_links(sources: dict[Path, str]) -> Iterator[str]:
    """Find relative links in Markdown whose file or heading does not exist."""
    for page, text in sources.items():
        if page.suffix != ".md":
            continue
        for match in LINK.finditer(FENCED.sub("", text)):
            target, _, fragment = match[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            linked = (ROOT / page.parent / target).resolve() if target else ROOT / page
            if not linked.exists():
                yield f"{page}: the link {match[1]} leads nowhere"
            elif fragment and linked.suffix == ".md" and fragment not in anchors(linked.read_text(encoding="utf-8")):
                yield f"{page}: {match[1]} names no heading of that page"


def anchors(text: str) -> set[str]:
    """Give the anchors that readers of Markdown make from headings: lower case, hyphens for spaces, no punctuation."""
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in HEADING.findall(FENCED.sub("", text)))
    return {heading.strip().replace(" ", "-") for heading in plain}


def undocumented_names() -> Iterator[str]:
    """Find names the code can say that their page does not mention."""
    for page, enumerations in DOCUMENTED.items():
        path = ROOT / page
        mentioned = set(re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8"))) if path.exists() else set()
        for enumeration in enumerations:
            for name in sorted(enumeration() - mentioned):
                yield f"{page}: `{name}` is not documented ({enumeration.__name__})"


def forbidden_texts(sources: dict[Path, str]) -> Iterator[str]:
    """Find what must not be in a public repository."""
    for path, text in sources.items():
        for number, line in enumerate(text.splitlines(), 1):
            for what, pattern in FORBIDDEN.items():
                if pattern.search(line):
                    yield f"{path}:{number}: {what}"


def named_indexes(sources: dict[Path, str]) -> Iterator[str]:
    """Find a package index, a URL or a find-links option in the requirement files: they must work with any index."""
    for path, text in sources.items():
        if path.parts[0] == "requirements":
            for number, line in enumerate(text.splitlines(), 1):
                if URL_OR_INDEX.search(line):
                    yield f"{path}:{number}: names an index or a URL"


def unexplained_exceptions(sources: dict[Path, str]) -> Iterator[str]:
    """Find a lint or type exception without its reason behind it."""
    for path, text in sources.items():
        if path.suffix != ".py":
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = LINT_EXCEPTION.search(line)
            if match and "re.compile" not in line and len(match[1].split()) < 2:
                yield f"{path}:{number}: say why, on the same line"


def readme_too_long(sources: dict[Path, str]) -> Iterator[str]:
    """A newcomer reads the README whole."""
    lines = sources.get(Path("README.md"), "").count("\n")
    if lines > README_LINES:
        yield f"README.md: {lines} lines, at most {README_LINES}"


def requirements_written_by_hand() -> Iterator[str]:
    """Find where the page of requirements says else than the marks of the tests, and marks of what is none."""
    page, marks = requirements.PAGE.read_text(encoding="utf-8"), requirements.marks_of(ROOT / "tests")
    place = requirements.PAGE.relative_to(ROOT)
    if requirements.written(page, marks) != page:
        yield f"{place}: tests are named by their marks alone; `python -m scripts.requirements` writes it"
    yield from (f"{place}: {stranger}" for stranger in requirements.strangers(page, marks))


def long_files(sources: dict[Path, str]) -> Iterator[str]:
    """Find code that has outgrown one file."""
    for path, text in sources.items():
        lines = text.count("\n")
        if path.suffix == ".py" and lines > LONG_FILE_LINES:
            yield f"{path}: {lines} lines, split it"


if __name__ == "__main__":
    main()
