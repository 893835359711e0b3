"""The quick start as a newcomer follows it, on free ports."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
LAB = ["lab", *(f"--{name}-port=0" for name in ("apns", "fcm", "webpush", "oauth", "admin")), "--directory"]
URL = "http://127.0.0.1:8080"
"""Where the page's Waypost answers."""


def blocks(language: str) -> list[str]:
    """Give the page's blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def write_configuration(folder: Path, lab: dict[str, Any]) -> list[str]:
    """Write the page's ``waypost.yaml`` for a *lab* that answers elsewhere; give the option that names it."""
    text = blocks("yaml")[0]
    for usual, real in {"2197": lab["apns"], "2198": lab["fcm"], "2199": lab["webpush"]}.items():
        text = text.replace(f"https://127.0.0.1:{usual}", real)
    (folder / "waypost.yaml").write_text(text)
    return ["--config", str(folder / "waypost.yaml")]
