"""How Waypost starts processes of its own."""

from __future__ import annotations

import sys
from typing import Final

MODULE: Final = (sys.executable, "-P", "-m")
"""The beginning of a command that runs a module with this interpreter: without ``-P`` the current folder comes first
where modules are looked for, and a ``yaml.py`` that lies there would be run (docs.python.org, using/cmdline)."""
