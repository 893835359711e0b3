"""The package that ``waypost senders new`` writes, from the files in ``sender_template``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Final

from msgspec import Struct

from waypost import __version__

TEMPLATE: Final = Path(__file__).parent / "sender_template"
_SUFFIX: Final = ".tmpl"


class Names(Struct, frozen=True):
    """The names in a package."""

    name: str
    channel: str
    platform: str
    title: str

    @property
    def distribution(self) -> str:
        """The name under which it is installed."""
        return f"waypost-{self.name.replace('_', '-')}"

    @property
    def module(self) -> str:
        """The name under which it is imported."""
        return self.distribution.replace("-", "_")

    @property
    def cls(self) -> str:
        """The beginning of the names of its classes."""
        return self.channel.replace("_", " ").title().replace(" ", "")


def write(names: Names, folder: Path) -> Iterator[Path]:
    """Write the package into *folder*, which is empty or not there; give each file once it is written."""
    words = {
        "channel": names.channel,
        "cls": names.cls,
        "distribution": names.distribution,
        "module": names.module,
        "platform": names.platform,
        "title": names.title,
        "version": __version__,
    }
    for source in sorted(TEMPLATE.rglob(f"*{_SUFFIX}")):
        relative = str(source.relative_to(TEMPLATE)).removesuffix(_SUFFIX)
        path = folder / relative.replace("MODULE", names.module).replace("CHANNEL", names.channel)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(source.read_text(encoding="utf-8")).substitute(words), encoding="utf-8")
        yield path
