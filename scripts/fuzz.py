"""Fuzz each target for a time: `python scripts/fuzz.py [SECONDS]`, in an environment of its own.

What is found is kept in .cache/fuzz/TARGET and sought on from there the next time; a file `crash-…` there is a bug.
Runs on the system's Python with the standard library alone.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".cache" / "fuzz"
VENV = KEPT / "venv"
PINS = ROOT / "requirements" / "fuzz.txt"
TARGETS = ("frames", "headers")


def main() -> None:
    """Install what is missing, fuzz; end with 1 if a target failed."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    install()
    failed = [target for target in TARGETS if not fuzz(target, seconds)]
    if failed:
        sys.exit(f"Found something: {', '.join(failed)}; the input is in {KEPT.relative_to(ROOT)}.")


def install() -> None:
    """Make the environment when the pins changed."""
    stamp = VENV / ".installed"
    wanted = hashlib.sha256(PINS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    venv.create(VENV, with_pip=True, clear=True)
    pip: list[str | Path] = [VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ended = subprocess.run([*pip, "--only-binary=:all:", "--require-hashes", "-r", PINS], check=False)
    if ended.returncode != 0:
        sys.exit("The fuzzer cannot be installed: there is a wheel of atheris for Linux on x86-64 alone.")
    stamp.write_text(wanted)


def fuzz(target: str, seconds: str) -> bool:
    """Search on from the corpus and from what was found before."""
    print(f"\n== {target}: {seconds} s ==", flush=True)
    found = KEPT / target
    found.mkdir(parents=True, exist_ok=True)
    options: list[str | Path] = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={found}/",
        "-max_len=4096",
        "-print_final_stats=1",
    ]
    command: list[str | Path] = [
        VENV / "bin" / "python",
        "-m",
        "fuzz",
        target,
        *options,
        found,
        ROOT / "fuzz" / "corpus" / target,
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    main()
