"""``python -m benchmarks.page``: write the page's table from the run that is kept beside it.

``--keep`` keeps the last run first, if it was a whole one. ``--check`` writes nothing, and says whether the table is
that of the kept run.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from waypost.bench.figures import Line, Report, lines

DOCS: Final = Path(__file__).parents[1] / "docs" / "internals"
PAGE: Final = DOCS / "performance.md"
KEPT: Final = DOCS / "bench" / "latest.json"
LATEST: Final = Path(__file__).parent / "results" / "latest.json"
BEGIN: Final = "<!-- the table: `python -m benchmarks.page` writes it -->"
END: Final = "<!-- the end of the table -->"
_HEAD: Final = "| figure | wanted | measured | met | others |\n|---|---|---|---|---|"


def main(arguments: list[str]) -> int:
    """The exit status: 1 where there is something to complain of."""
    if "--check" in arguments:
        complaints = stale()
        print(*complaints, sep="\n", end="\n" if complaints else "")
        return 1 if complaints else 0
    if "--keep" in arguments:
        if missing := unfinished(json.loads(LATEST.read_text(encoding="utf-8"))):
            print(f"{LATEST.name} is not of a whole run: it lacks {', '.join(missing)}.", file=sys.stderr)
            return 1
        KEPT.parent.mkdir(exist_ok=True)
        shutil.copyfile(LATEST, KEPT)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), kept()), encoding="utf-8")
    return 0


def stale() -> list[str]:
    """List what is wrong with the table on the page; nothing where it is that of the kept run."""
    page = PAGE.read_text(encoding="utf-8")
    return [] if written(page, kept()) == page else [f"{PAGE.name}: run `python -m benchmarks.page`"]


def kept() -> Report | None:
    """The run that is kept with the page."""
    if not KEPT.exists():
        return None
    run: Report = json.loads(KEPT.read_text(encoding="utf-8"))
    return run


def unfinished(run: Report) -> list[str]:
    """The benches that a figure comes from and that were not run."""
    return sorted({line["measured"] for line in run["table"] if not line["interpreter"]})


def written(page: str, run: Report | None) -> str:
    """Put the table in its place on the page."""
    whole = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if whole.search(page) is None:
        raise ValueError("the page has no place for the table")
    return whole.sub(lambda _: f"{BEGIN}\n\n{_text(run)}\n\n{END}", page)


def _text(run: Report | None) -> str:
    if run is None:
        return "\n".join(["No whole run is kept yet.", "", _HEAD, *map(_line, lines([], {}, ""))])
    machine, benches = run["machine"], run["benches"].values()
    minutes = sum(ran["seconds"] for ran in benches) / 60
    loop_us = sorted(ran["loop_us"] for ran in benches)
    taken = (
        f"`make bench` of {run['taken'][:10]}, {minutes:.0f} minutes, {machine['cores']} cores ({machine['cpu']}), "
        f"Linux {machine['kernel']}, {machine['interpreter']}; "
        f"a turn of the loop took {loop_us[0]:.1f} to {loop_us[-1]:.1f} µs of CPU."
    )
    return "\n".join([taken, "", _HEAD, *map(_line, run["table"])])


def _line(line: Line) -> str:
    cells = [line["figure"], line["wanted"], line["measured"], line["met"], line["others"]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
