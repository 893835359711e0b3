"""Render the chart, and judge it and the stacks of Compose: ``python -m scripts.deployment``."""

import subprocess
import sys

from scripts.deployment import chart, composed


def main() -> None:
    """Write what was rendered anew, and end with 1 where anything is refused."""
    try:
        for name in chart.names():
            print(f"== helm, {name}", flush=True)
            text = chart.render(name)
            chart.judge(text)
            (chart.RENDERED / f"{name}.yaml").write_text(text, encoding="utf-8")
        for stack in composed.stacks():
            print(f"== compose, {stack}", flush=True)
            composed.judge(stack)
    except subprocess.CalledProcessError as refused:
        sys.exit(f"refused by {refused.cmd[0]}: {(refused.stderr or '').strip()}")


if __name__ == "__main__":
    main()
