"""The quick start as a newcomer follows it, on free ports."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
OWN_PORTS = ("apns", "fcm", "webpush", "oauth", "admin")
LAB = ["lab", *(f"--{name}-port=0" for name in OWN_PORTS), "--port=email=0", "--port=twilio=0", "--directory"]
URL = "http://127.0.0.1:8080"
"""Where the page's Waypost answers."""


def blocks(language: str) -> list[str]:
    """Give the page's blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def write_configuration(folder: Path, lab: dict[str, Any]) -> list[str]:
    """Write the page's ``waypost.yaml`` for a *lab* that answers elsewhere; give the option that names it."""
    text = blocks("yaml")[0]
    gateways = {"2196": "twilio", "2197": "apns", "2198": "fcm", "2199": "webpush"}
    for usual, gateway in gateways.items():
        text = text.replace(f"https://127.0.0.1:{usual}", lab[gateway])
    text = text.replace("port: 2587", f"port: {urlsplit(lab['email']).port}")
    (folder / "waypost.yaml").write_text(text)
    return ["--config", str(folder / "waypost.yaml")]
