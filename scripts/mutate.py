"""Plant one fault after the other in a copy of the tree, and see whether the tests that its row names notice it.

Nothing is planted in the tree itself. First all of those tests must pass as things are; a fault after which they still
pass has survived, and the command ends with 1.
"""

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.mutants import PACKAGE, Misfit, Mutant, plant, put, read_table
from scripts.services.shared import BASE, ROOT, kept

PYTHON = ROOT / ".venv" / "bin" / "python"
SIDE_BY_SIDE = 2
MUTANT_S = 180
"""A fault whose tests have not ended by then is one that they notice: they would never end."""
TEST_S = 60
"""The same for one test, whatever it allows itself."""
UNMUTATED_S = 1_200
PASSED, FAILED = 0, 1
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """The fate of a planted fault."""

    name: str
    verdict: str
    """``noticed``, ``survived`` or ``error``."""
    by: str
    """The test that failed, or what is wrong."""
    seconds: float


def main() -> None:
    """Try the rows that were asked for; end with 1 unless each was noticed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--only", action="append", metavar="NAME", help="try these rows alone; may be given again")
    asked.add_argument("--json", action="store_true", help="print the results as JSON")
    given = asked.parse_args()
    try:
        mutants = chosen(read_table(ROOT), given.only)
    except Misfit as misfit:
        sys.exit(str(misfit))
    with kept() as base, tempfile.TemporaryDirectory(prefix="waypost-mutants-") as scratch:
        os.environ[BASE] = str(base)
        trees = [copied_tree(Path(scratch) / str(n)) for n in range(min(SIDE_BY_SIDE, len(mutants)))]
        must_pass(trees[0], mutants)
        results = tried(mutants, trees)
    if given.json:
        print(json.dumps([asdict(each) for each in results], indent=1))
    sys.exit(report(results))


def chosen(mutants: list[Mutant], names: list[str] | None) -> list[Mutant]:
    """The rows with *names*, or all; Misfit for a name that no row has."""
    if not names:
        return mutants
    unknown = set(names) - {each.name for each in mutants}
    if unknown:
        raise Misfit(f"no such row: {', '.join(sorted(unknown))}")
    return [each for each in mutants if each.name in names]


def copied_tree(to: Path) -> Path:
    """Copy what git knows of this tree, or would; the copy has the same environment."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".venv").symlink_to(ROOT / ".venv")
    return to


def must_pass(tree: Path, mutants: Iterable[Mutant]) -> None:
    """Run every test that a row names with nothing planted; end where one of them fails."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    say(f"{len(tests)} selections of tests, with nothing planted ...")
    started = time.monotonic()
    code, output = run(tree, ["-n", str(SIDE_BY_SIDE), "--dist", "loadfile", *tests], UNMUTATED_S)
    if code != PASSED:
        sys.exit(f"{output}\nThe tests do not pass as things are.")
    say(f"pass in {time.monotonic() - started:.0f} s")


def tried(mutants: list[Mutant], trees: list[Path]) -> list[Ended]:
    """Plant each fault alone, as many at a time as there are trees; say of each what became of it."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def try_one(mutant: Mutant) -> Ended:
        tree = free.get()
        try:
            return try_in(tree, mutant)
        finally:
            free.put(tree)

    results: list[Ended] = []
    with ThreadPoolExecutor(len(trees)) as beside:
        trials = [beside.submit(try_one, mutant) for mutant in mutants]
        try:
            for done in as_completed(trials):
                ended = done.result()
                results.append(ended)
                progress = f"{len(results):3}/{len(mutants)}  {ended.verdict:8}"
                say(f"{progress}  {ended.name} ({ended.seconds:.0f} s)  {ended.by}")
        finally:
            beside.shutdown(cancel_futures=True)
    return sorted(results, key=lambda each: each.name)


def try_in(tree: Path, mutant: Mutant) -> Ended:
    """Plant one fault in *tree*, run its tests, and take it out again."""
    started = time.monotonic()
    try:
        source = plant(mutant, tree)
    except Misfit as misfit:
        return Ended(mutant.name, "error", str(misfit), 0.0)
    try:
        code, output = run(tree, ["-x", *mutant.tests], MUTANT_S)
    finally:
        put(tree / PACKAGE / mutant.file, source)
    seconds = round(time.monotonic() - started, 1)
    if code is None:
        return Ended(mutant.name, "noticed", f"its tests do not end in {MUTANT_S} s", seconds)
    if code == PASSED:
        return Ended(mutant.name, "survived", mutant.why, seconds)
    failed = _FAILED.search(output)
    if code != FAILED or failed is None:
        return Ended(mutant.name, "error", output[-2_000:], seconds)
    return Ended(mutant.name, "noticed", failed[1], seconds)


def run(tree: Path, how: list[str], most_s: float) -> tuple[int | None, str]:
    """Run pytest in *tree* and return its exit code and output; None where it did not end in time."""
    quickly = ["-q", "-p", "no:cacheprovider", "-o", f"timeout={TEST_S}"]
    command: list[str | Path] = [PYTHON, "-m", "pytest", *quickly, *how]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as running:
        try:
            output, _ = running.communicate(timeout=most_s)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return None, ""
    return running.returncode, output


def report(results: list[Ended]) -> int:
    """Print what survived and the score; the exit code."""
    for ended in results:
        if ended.verdict != "noticed":
            say(f"{ended.verdict.upper()}  {ended.name}: {ended.by}")
    noticed = sum(ended.verdict == "noticed" for ended in results)
    say(f"{noticed} of {len(results)} planted faults were noticed: {100 * noticed // max(1, len(results))} %")
    return 0 if noticed == len(results) else 1


def say(line: str) -> None:
    """Tell of the progress beside the results."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
