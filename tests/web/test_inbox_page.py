"""What a newcomer sees of the inbox: the page of `make run`, and "Add an inbox to your site in five minutes"."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import pytest

from tests.journeys.quick_start import CLEAN, ROOT
from tests.ports import reserved_port
from tests.web.conftest import CHROMIUM
from waypost.cli.children import Children

PAGE: Final = (ROOT / "docs" / "inbox.md").read_text(encoding="utf-8").split("## Its looks")[0]
WALK: Final = """
import { chromium } from "playwright-core";
const browser = await chromium.launch({ executablePath: process.argv[1], args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(process.argv[2]);
await page.getByRole("button", { name: "Notifications", exact: true }).waitFor();
console.log("open");
await page.getByRole("button", { name: "Notifications, 1 unread" }).click();
await page.getByText("Your parcel is here", { exact: true }).waitFor();
await browser.close();
"""
SHOP: Final = """
import { chromium } from "playwright-core";
const browser = await chromium.launch({ executablePath: process.argv[1], args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(process.argv[2]);
await page.getByText("user-1").waitFor();
await page.getByRole("checkbox").check();
await page.getByRole("button", { name: "Send" }).click();
await page.getByText("ms after the click").waitFor();
await page.getByRole("button", { name: "Notifications, 1 unread" }).click();
await page.getByRole("dialog").getByText("Your parcel is here", { exact: true }).waitFor();
await browser.close();
"""


@pytest.fixture
def followed(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The files of the page in a folder of their own, and the addresses in it that stand for those of the page."""
    ours = {port: str(reserved_port()) for port in ("8080", "8000")}
    for language in ("yaml", "python", "html"):
        for block in blocks(language, ours):
            match = re.match(r"(?:#|<!--) (\S+)", block)
            assert match is not None, block
            (tmp_path / match[1]).parent.mkdir(exist_ok=True)
            (tmp_path / match[1]).write_text(re.sub(r"^<!--.*-->\n", "", block))
    return tmp_path, ours


def blocks(language: str, ports: dict[str, str]) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return [re.sub(r"\b(8080|8000)\b", lambda port: ports[port[0]], block) for block in found]


def test_an_inbox_is_added_as_the_page_says(sdk: Path, followed: tuple[Path, dict[str, str]]) -> None:
    folder, ports = followed
    if not Path(CHROMIUM).exists():
        pytest.skip("needs Debian's chromium")
    secret, serve, site, send = blocks("sh", ports)
    assert (serve, site) == ("waypost serve\n", "python3 site.py\n")
    environ = CLEAN | {"PATH": f"{Path(sys.executable).parent}:{CLEAN['PATH']}"}
    shell(secret, folder, environ)
    with Children(folder) as children:
        children.start("serve", ["serve", "--config", str(folder / "waypost.yaml")], environ)
        running = subprocess.Popen([sys.executable, "site.py"], cwd=folder, stderr=subprocess.DEVNULL)
        walk = ["node", "--input-type=module", "-e", WALK, CHROMIUM, f"http://localhost:{ports['8000']}"]
        try:
            with subprocess.Popen(walk, cwd=sdk, stdout=subprocess.PIPE, text=True) as browser:
                assert browser.stdout is not None
                assert browser.stdout.readline() == "open\n"
                shell(send, folder, environ)
            assert browser.returncode == 0
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://localhost:{ports['8000']}/login.secret")
        finally:
            running.kill()
            running.wait()


def test_make_run_has_a_page_with_a_live_inbox(sdk: Path) -> None:
    if not Path(CHROMIUM).exists():
        pytest.skip("needs Debian's chromium")
    command = [sys.executable, "-u", "-m", "waypost.cli", "demo"]
    with subprocess.Popen(command, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        said = iter(demo.stdout)
        page = next((line.split()[2] for line in said if "the inbox" in line), None)
        try:
            assert page is not None
            walk = ["node", "--input-type=module", "-e", SHOP, CHROMIUM, page]
            ended = subprocess.run(walk, cwd=sdk, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
        finally:
            demo.terminate()
            demo.stdout.read()


def shell(commands: str, folder: Path, environ: dict[str, str]) -> None:
    ended = subprocess.run(
        ["bash", "-ec", commands], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, commands + ended.stdout + ended.stderr
