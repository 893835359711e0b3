"""The Debian package: `python -m scripts.debian`, for the Python, Debian and processor of the machine that builds it.

Everything that runs is in /opt/waypost, pinned by hash; the system's own Python runs it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_SOURCE: Final = ROOT / "packaging" / "debian"
_SYSTEM_PYTHON: Final = "/usr/bin/python3"
_KEPT: Final = {"pyvenv.cfg", "waypost"}
_SCRIPTS: Final = ("postinst", "prerm", "postrm")
_CONTROL: Final = """\
Package: waypost
Version: {version}
Architecture: {architecture}
Maintainer: The Waypost authors <root@localhost>
Depends: python3 (>= {python}), python3 (<< {next_python}), passwd
Recommends: systemd
Section: net
Priority: optional
Installed-Size: {kib}
Description: self-hosted notification delivery service
 Accepts notifications by HTTP and gRPC, and delivers them to every device of
 a user by APNs, FCM, Web Push, e-mail, SMS and webhooks, with receipts.
"""


def main() -> None:
    """Build it into dist/, and print its name."""
    print(build(ROOT / "dist").relative_to(ROOT))


def build(into: Path) -> Path:
    """Build the package of this tree; the file."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / "tree"
        _environment(tree / "opt" / "waypost", Path(made) / "wheel")
        _put(tree)
        version, architecture = _version(tree), _said("dpkg", "--print-architecture")
        _control(tree, version, architecture)
        into.mkdir(exist_ok=True)
        package = into / f"waypost_{version}_{architecture}.deb"
        _run("dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(tree), str(package), quiet=True)
        return package


def _environment(folder: Path, wheels: Path) -> None:
    """Make an environment that may be moved, with the wheel of this tree and what its servers need."""
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(ROOT), quiet=True)
    uv = str(Path(sys.executable).with_name("uv"))
    _run(uv, "venv", "--quiet", "--relocatable", "--python", _SYSTEM_PYTHON, str(folder))
    install = (uv, "pip", "install", "--quiet", "--link-mode", "copy", "--python", str(folder / "bin" / "python"))
    _run(*install, "--require-hashes", "--requirements", str(ROOT / "requirements" / "server.txt"))
    _run(*install, "--no-deps", *map(str, wheels.glob("*.whl")))
    for file in [*folder.iterdir(), *(folder / "bin").iterdir()]:
        if file.is_file() and not file.is_symlink() and file.name not in _KEPT:
            file.unlink()  # other programs, a lock that all may write to, scripts that name the folder it was made in
    for cache in [*folder.rglob("__pycache__")]:
        shutil.rmtree(cache)


def _put(tree: Path) -> None:
    """Put what is no Python: the program's name, the unit, the configuration, the license."""
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "waypost").symlink_to("/opt/waypost/bin/waypost")
    _copy(ROOT / "deploy" / "systemd" / "waypost.service", tree / "usr" / "lib" / "systemd" / "system")
    _copy(_SOURCE / "waypost.yaml", tree / "etc" / "waypost")
    _copy(ROOT / "LICENSE", tree / "usr" / "share" / "doc" / "waypost")
    (tree / "usr/share/doc/waypost/LICENSE").rename(tree / "usr/share/doc/waypost/copyright")


def _copy(file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, folder)
    (folder / file.name).chmod(0o644)


def _control(tree: Path, version: str, architecture: str) -> None:
    folder = tree / "DEBIAN"
    folder.mkdir()
    python = _said(_SYSTEM_PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split()
    after = f"{python[0]}.{int(python[1]) + 1}"
    kib = sum(path.lstat().st_size for path in tree.rglob("*") if path.is_file()) // 1024
    (folder / "control").write_text(
        _CONTROL.format(version=version, architecture=architecture, python=".".join(python), next_python=after, kib=kib)
    )
    (folder / "conffiles").write_text("/etc/waypost/waypost.yaml\n")
    for name in _SCRIPTS:
        shutil.copy(_SOURCE / name, folder)
        (folder / name).chmod(0o755)


def _version(tree: Path) -> str:
    """Return the version of what was installed, as Debian orders it: 0.1.0.dev0 comes before 0.1.0."""
    said = _said(str(tree / "opt" / "waypost" / "bin" / "waypost"), "--version").split()[-1]
    return re.sub(r"\.?(dev|a|b|rc)(\d+)$", r"~\1\2", said)


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _run(*command: str, quiet: bool = False) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL if quiet else None)


if __name__ == "__main__":
    main()
