"""What a newcomer does first: the demonstration, then the quick start, each as written down."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.journeys.provider_pages import configuration, first_push
from tests.journeys.quick_start import CLEAN, LAB, ROOT, URL, blocks, write_configuration
from tests.shows import shows
from waypost.cli.children import Children


@shows("S1-01")
def test_make_run_once_shows_all_three_deliveries_and_ends_with_0() -> None:
    result = subprocess.run(
        ["make", "--no-print-directory", "run", "ONCE=1"],
        cwd=ROOT,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for expected in ("202 Accepted", "routed to 3 devices", "each device once, nothing else"):
        assert expected in result.stdout
    assert len(re.findall(r"receipt: sent", result.stdout)) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demonstration_stays_up_and_leaves_no_process_behind(number: signal.Signals) -> None:
    command = [sys.executable, "-u", "-m", "waypost.cli", "demo"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, its children too
    with subprocess.Popen(command, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if "Stop with Ctrl-C" in line:
                break
        try:
            below = descendants(demo.pid)
            readable = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in [demo.pid, *below])
            inherited = b"".join(Path(f"/proc/{pid}/environ").read_bytes() for pid in below)
            key, others = secrets_of("".join(said))
            page = opened_dashboard("".join(said))
            demo.send_signal(number)
            assert demo.wait(60) == 0, "".join(said)
        finally:
            demo.terminate()  # where it did not end; leaving the block waits for it
    assert "reference" in "".join(said)
    assert "open now" in page and "local" in page
    assert len(below) >= 4, "the lab, the supervisor and two workers"
    assert [pid for pid in below if Path(f"/proc/{pid}").exists()] == []
    assert b"waypost.bootstrap" in readable and b"lab" in readable
    assert [secret for secret in [key, *others] if secret.encode() in readable] == []
    assert key.encode() not in inherited


def opened_dashboard(said: str) -> str:
    """The page that the printed link leads to, for a browser that keeps the cookies it is given."""
    (link,) = re.findall(r"dashboard +(http\S+)", said)
    with httpx.Client(follow_redirects=True) as browser:
        assert "waypost dashboard" in browser.get(link.partition("?")[0]).text, "and not without the token"
        page = browser.get(link)
        assert page.status_code == 200 and "token" not in str(page.url), page.text
        return page.text


def secrets_of(said: str) -> tuple[str, list[str]]:
    """The key that the demonstration printed; and its devices' tokens with the lines of the files of credentials."""
    (key,) = re.findall(r"WAYPOST_API_KEY=(\S+)", said)
    (lab,) = re.findall(r"lab +(http\S+)", said)
    (folder,) = re.findall(r"files, logs +(\S+)", said)
    connection = http.client.HTTPConnection(urlsplit(lab).netloc)
    connection.request("GET", "/received")
    received = json.loads(connection.getresponse().read())["received"]
    tokens = [record["token"] for record in received if record["token"]]
    connection.close()
    assert len(tokens) == 3
    files = [path for path in (Path(folder) / "lab").iterdir() if path.suffix in {".p8", ".pem", ".txt", ".secret"}]
    lines = [line for path in files for line in path.read_text().splitlines() if len(line) >= 16]
    assert len(lines) >= 10
    return key, [*tokens, *lines]


def descendants(pid: int) -> list[int]:
    """The processes below *pid*."""
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [deeper for child in children for deeper in descendants(child)]


@pytest.fixture(scope="module")
def quick_start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder of somebody who followed the quick start up to the key, on free ports; and their environment."""
    folder = tmp_path_factory.mktemp("quick-start")
    with Children(folder) as children:
        lab = children.start("lab", [*LAB, str(folder / "lab")], CLEAN)
        config = write_configuration(folder, lab)
        ready = children.start("serve", ["serve", *config, "--listen", "127.0.0.1:0", "--workers", "2"], CLEAN)
        environ = CLEAN | {"WAYPOST_URL": ready["url"]}
        key = waypost(folder, environ, "keys", "create", "--app", "demo", "--caller", "me")
        yield folder, environ | {"WAYPOST_API_KEY": key.stdout.strip(), "WAYPOST_LAB": lab["admin"]}


def waypost(
    folder: Path, environ: dict[str, str], *arguments: str, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a command in *folder* and expect its exit *status*."""
    command = [sys.executable, "-m", "waypost.cli", *arguments]
    result = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result


def answered(quick_start: tuple[Path, dict[str, str]], *arguments: str, status: int = 0) -> Any:
    """What a command says with --json."""
    return json.loads(waypost(*quick_start, *arguments, "--json", status=status).stdout)


def test_the_configuration_of_the_quick_start_is_found_good(quick_start: tuple[Path, dict[str, str]]) -> None:
    found = answered(quick_start, "check-config")
    assert found["ok"]
    assert found["credentials"] == dict.fromkeys(("demo/apns", "demo/email", "demo/fcm", "demo/sms", "demo/webpush"))
    assert found["http2"] == "pure Python"


def test_the_commands_of_the_quick_start_send_and_show(quick_start: tuple[Path, dict[str, str]]) -> None:
    """Every shell command of the page that is not a server, an installation or an export, as it is written."""
    folder, environ = quick_start
    tools = Path(sys.executable).parent
    ran = []
    for line in "\n".join(blocks("sh")).replace("\\\n", " ").splitlines():
        command = line.split("  #")[0].strip()
        if re.match(r"(make|export|pip|waypost (lab|serve|check-config|show ID))\b", command):
            continue
        command = command.replace(URL, environ["WAYPOST_URL"])
        shell = environ | {"PATH": f"{tools}:{environ['PATH']}"}
        result = subprocess.run(
            ["bash", "-ec", command], cwd=folder, env=shell, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, command + result.stdout + result.stderr
        ran.append(command.split()[:2])
    assert ["waypost", "send"] in ran
    assert len(ran) >= 5


@shows("S3-136")
@pytest.mark.parametrize(
    ("page", "named", "file", "token"),
    [("apns.md", "AuthKey.p8", "AuthKey.p8", "cd" * 32), ("fcm.md", "/etc/waypost/fcm.json", "fcm.json", "x" * 140)],
    ids=["apns", "fcm"],
)
def test_whoever_follows_a_providers_page_delivers_a_first_push(
    quick_start: tuple[Path, dict[str, str]], tmp_path: Path, page: str, named: str, file: str, token: str
) -> None:
    """Its configuration is complete: the service's own check finds nothing missing. Its commands deliver."""
    folder, environ = quick_start
    (tmp_path / "waypost.yaml").write_text(configuration(page, {named: folder / "lab" / file}))
    checked = json.loads(waypost(tmp_path, CLEAN, "check-config", "--json").stdout)
    assert (checked["ok"], [*checked["credentials"]]) == (True, [f"demo/{page.removesuffix('.md')}"])
    shell = environ | {"PATH": f"{Path(sys.executable).parent}:{environ['PATH']}", "TOKEN": token}
    commands = ["bash", "-euo", "pipefail", "-c", first_push(page)]
    result = subprocess.run(commands, cwd=folder, env=shell, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "receipt: sent" in result.stdout


ONCE = ("--dedup-window", "600")


@shows("S2-28")
def test_a_user_is_served_by_command_line_alone(quick_start: tuple[Path, dict[str, str]]) -> None:
    assert answered(quick_start, "devices", "add", "bob", "phone", "--platform", "ios", "--token", "ab" * 32)["created"]
    listed = answered(quick_start, "devices", "list", "bob")["items"]
    assert [(each["device_id"], each["platform"]) for each in listed] == [("phone", "ios")]
    explained = answered(quick_start, "explain", "bob", "--title", "Hi", "--data", "n=1")
    assert [target["credential"] for target in explained["targets"]] == ["demo/apns"]
    assert "Hi" in explained["targets"][0]["rendered"]["body"]
    detail = answered(quick_start, "send", "bob", "--title", "Hi", "--data", "n=1", *ONCE, "--wait")
    assert detail["notification"]["status"] == "sent"
    again = answered(quick_start, "send", "bob", "--title", "Hi", "--data", "n=1", *ONCE)
    assert (again["deduplicated"], again["id"]) == (True, detail["notification"]["id"])
    assert answered(quick_start, "dedup", "clear", "bob", "--title", "Hi", "--data", "n=1") == {"forgotten": 1}
    anew = answered(quick_start, "send", "bob", "--title", "Hi", "--data", "n=1", *ONCE, "--wait")
    assert anew["notification"]["id"] != again["id"]
    drawn = waypost(*quick_start, "show", again["id"]).stdout
    assert "routed to 1 device" in drawn
    assert "receipt: sent" in drawn
    assert answered(quick_start, "devices", "remove", "bob", "phone") == {"removed": "phone"}
    late = answered(quick_start, "send", "bob", "--title", "Gone?", "--wait", status=1)
    assert late["notification"]["status"] == "no_targets"


def test_a_file_of_notifications_is_sent_and_each_refusal_is_named(quick_start: tuple[Path, dict[str, str]]) -> None:
    folder, environ = quick_start
    lines = [{"user_id": f"u{n}", "title": f"Hi {n}"} for n in range(1_500)] + [{"title": "to whom?"}]
    (folder / "many.ndjson").write_text("\n".join(json.dumps(line) for line in lines))
    result = waypost(folder, environ, "send", "--many", "many.ndjson", "--json", status=1)
    said = json.loads(result.stdout)
    assert (said["accepted"], [each["line"] for each in said["refused"]]) == (1_500, [1_501])


@shows("S4-26")
def test_dead_letters_are_listed_and_replayed(quick_start: tuple[Path, dict[str, str]]) -> None:
    """A token that Apple does not know: the delivery fails for good, and a new round can be ordered."""
    answered(quick_start, "devices", "add", "carol", "phone", "--platform", "ios", "--token", "cd" * 32)
    answer = {"status": 400, "reason": "BadDeviceToken"}
    script = {"rules": [{"where": "apns", "match": {"token": "cd" * 32}, "do": {"answer": answer}}]}
    script_lab(quick_start, script)
    detail = answered(quick_start, "send", "carol", "--title", "Hi", "--wait", status=1)
    assert detail["notification"]["status"] == "failed"
    letters = answered(quick_start, "dead", "list", "--user", "carol")["items"]
    assert [each["receipt"]["code"] for each in letters] == ["BadDeviceToken"]
    script_lab(quick_start, {"rules": []})
    assert answered(quick_start, "dead", "replay", detail["notification"]["id"]) == {"replayed": 1, "skipped": 0}
    assert answered(quick_start, "dead", "list", "--user", "carol")["items"] == []


def script_lab(quick_start: tuple[Path, dict[str, str]], script: dict[str, Any]) -> None:
    """Put fault rules in force."""
    connection = http.client.HTTPConnection(urlsplit(quick_start[1]["WAYPOST_LAB"]).netloc)
    connection.request("POST", "/faults", json.dumps(script))
    assert connection.getresponse().status == 200
    connection.close()


def test_a_revoked_key_is_refused_with_a_stable_code(quick_start: tuple[Path, dict[str, str]]) -> None:
    folder, environ = quick_start
    made = answered(quick_start, "keys", "create", "--app", "demo", "--caller", "leaver")
    assert made["prefix"] in [each["prefix"] for each in answered(quick_start, "keys", "list")["items"]]
    waypost(folder, environ, "keys", "revoke", made["prefix"])
    refused = waypost(folder, environ | {"WAYPOST_API_KEY": made["key"]}, "devices", "list", "bob", status=1)
    assert refused.stderr.startswith("waypost: unauthenticated: ")
    assert made["key"] not in refused.stderr
