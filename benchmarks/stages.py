"""Where the CPU of a delivery goes: the samples of a profiled Waypost by stage, as rows and as a picture."""

from __future__ import annotations

import html
from collections import defaultdict
from pathlib import Path

STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Web Push: encrypt and sign", ("waypost.channels.push.encryption", "waypost.channels.push.vapid")),
    ("send: HTTP/2 and TLS", ("waypost.http2",)),
    ("send: render and judge", ("waypost.channels.apns", "waypost.channels.fcm", "waypost.channels.webpush")),
    ("send: render and judge", ("waypost.channels.push",)),
    ("route: devices", ("waypost.stores.sql.devices",)),
    ("route and lanes", ("waypost.pipeline.route", "waypost.pipeline.deliver", "waypost.domain.routing")),
    ("route and lanes", ("waypost.runtime.lane", "waypost.runtime.leasing")),
    ("route and lanes", ("waypost.runtime.gates", "waypost.runtime.dispatch")),
    ("lease", ("waypost.stores.sql.lease", "waypost.stores.sql.lease_table", "waypost.stores.sql.promote")),
    ("accept: rows and dedup", ("waypost.stores.sql.accept", "waypost.stores.sql.dedup")),
    ("accept: HTTP, JSON, checks", ("waypost.entrypoints", "waypost.pipeline.intake", "waypost.domain.submission")),
    ("accept: HTTP, JSON, checks", ("waypost.domain.dedup", "uvicorn", "httptools")),
    ("settle", ("waypost.stores.sql.settle", "waypost.runtime.settler", "waypost.pipeline.settle")),
    ("settle", ("waypost.domain.settlement", "waypost.stores.sql.rows")),
    ("report", ("waypost.pipeline.report", "waypost.stores.sql.journal")),
    ("commit", ("waypost.stores.sql",)),
)
"""The innermost frame that one of these names says which stage it is: the first that fits."""
OTHER = "loop and the rest"
COLOURS = ("#4878a8", "#6a9f58", "#d1615d", "#e7ca60", "#85b6b2", "#a87c9f", "#e49444", "#967662", "#b8b0ac", "#5778a4")
WIDTH, BAR, LEFT = 860, 26, 230


def by_stage(spent: dict[str, float]) -> list[tuple[str, float]]:
    """CPU seconds of each stage, the dearest first."""
    stages: defaultdict[str, float] = defaultdict(float)
    for stack, seconds in spent.items():
        stages[_stage(stack)] += seconds
    return sorted(stages.items(), key=lambda each: -each[1])


def _stage(stack: str) -> str:
    for frame in reversed(stack.split(";")):
        module = frame.partition(":")[0]
        for stage, prefixes in STAGES:
            if any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes):
                return stage
    return OTHER


def draw(file: Path, title: str, stages: list[tuple[str, float]], unit: str) -> None:
    """A bar for each stage, as SVG."""
    height = 40 + BAR * len(stages) + 10
    widest = max(value for _, value in stages)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="24" font-size="16">{html.escape(title)}</text>',
    ]
    for n, (name, value) in enumerate(stages):
        y, colour = 40 + n * BAR, COLOURS[n % len(COLOURS)]
        length = (WIDTH - LEFT - 110) * value / widest
        lines += [
            f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end">{html.escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{BAR - 7}" fill="{colour}"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 17}">{value:.1f} {unit}</text>',
        ]
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join([*lines, "</svg>"]) + "\n")
