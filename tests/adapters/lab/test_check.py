"""`waypost lab check` passes Waypost as its documentation sets it up, and finds what a simple sender gets wrong."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from tests.journeys.processes import state_of

DOC = (Path(__file__).parents[3] / "docs" / "internals" / "lab-check.md").read_text(encoding="utf-8")
FILE = re.compile(r"`(waypost\.yaml|send_to_targets\.py)`:\n\n```\w+\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"\$ (waypost lab check (?:[^`]|\n)*?)\n```")

ONE_TRY = """
import json, os, httpx, jwt, time

key = open(os.environ["LAB_APNS_KEY_FILE"]).read()
claims = {"iss": os.environ["LAB_APNS_TEAM_ID"], "iat": int(time.time())}
token = jwt.encode(claims, key, algorithm="ES256", headers={"kid": os.environ["LAB_APNS_KEY_ID"]})
headers = {"authorization": "bearer " + token, "apns-topic": os.environ["LAB_APNS_TOPIC"], "apns-push-type": "alert"}
with httpx.Client(http2=True, verify=os.environ["LAB_CA_FILE"]) as client:
    for target in json.load(open(os.environ["LAB_TARGETS_FILE"])):
        if target["gateway"] == "apns":
            url = os.environ["LAB_APNS_URL"] + "/3/device/" + target["token"]
            client.post(url, headers=headers, json={"aps": {"alert": os.environ["LAB_TEXT"]}})
"""

MAILS = """
import email.message, email.utils, json, os, smtplib, ssl

def send(mailbox):
    for _ in range(2):
        mail = email.message.EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "news@lab.example", mailbox, os.environ["LAB_TEXT"]
        mail["Date"], mail["Message-ID"] = email.utils.localtime(), email.utils.make_msgid(domain="lab.example")
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content("Hello")
        try:
            with smtplib.SMTP("localhost", int(os.environ["LAB_EMAIL_PORT"])) as server:
                server.starttls(context=ssl.create_default_context(cafile=os.environ["LAB_CA_FILE"]))
                server.login(os.environ["LAB_EMAIL_USERNAME"], open(os.environ["LAB_EMAIL_PASSWORD_FILE"]).read())
                server.send_message(mail)
            return
        except smtplib.SMTPServerDisconnected:
            pass
        except smtplib.SMTPResponseException:
            return

for target in json.load(open(os.environ["LAB_TARGETS_FILE"])):
    if target["gateway"] == "email":
        send(target["token"])
"""
"""Sends again where a connection breaks, as another message, and never after an answer; it reads no bounces."""


def checked(directory: Path, *arguments: str) -> tuple[int, dict[tuple[str, str], tuple[str, str]]]:
    """Run a check as a user does; its exit code, and verdict and reason by case and gateway."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    environment = {**own, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "waypost.cli", *arguments, "--json"], cwd=directory, env=environment, check=False,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout, done.stderr
    results = json.loads(done.stdout)["results"]
    return done.returncode, {(r["case"], r["gateway"]): (r["verdict"], r["why"]) for r in results}


def test_waypost_passes_as_the_page_sets_it_up(tmp_path: Path) -> None:
    for name, text in FILE.findall(DOC):
        (tmp_path / name).write_text(text)
    (command,) = COMMAND.findall(DOC)
    few = ["--case", "accepts", "--case", "refused-stream", "--quiet-time", "0.3"]
    status, results = checked(tmp_path, *shlex.split(command.replace("\\\n", ""))[1:], *few)
    log = (tmp_path / "lab" / "check.log").read_text()
    assert {verdict for verdict, _ in results.values()} == {"passed"}, f"{results}\n{log[-3000:]}"
    assert (status, len(results)) == (0, 13)


def test_a_sender_that_tries_once_is_found_out(tmp_path: Path) -> None:
    """It ends when it has its answers: what did not come while it ran does not come."""
    (tmp_path / "once.py").write_text(ONE_TRY)
    names = ("accepts", "unavailable", "refused-message", "settings-lowered", "handshake-fails")
    few = [word for name in names for word in ("--case", name)] + ["--patience", "0.5", "--quiet-time", "0.1"]
    status, results = checked(tmp_path, "lab", "check", "--command", f"{sys.executable} once.py", *few)
    assert status == 1
    assert results == {
        ("accepts", "apns"): ("passed", ""),
        ("accepts", "fcm"): ("not exercised", "nothing arrived"),
        ("accepts", "webpush"): ("not exercised", "nothing arrived"),
        ("accepts", "twilio"): ("not exercised", "nothing arrived"),
        ("accepts", "unifiedpush"): ("not exercised", "nothing arrived"),
        ("accepts", "webhook"): ("not exercised", "nothing arrived"),
        ("accepts", "email"): ("not exercised", "nothing arrived"),
        ("refused-message", "apns"): ("passed", ""),
        ("unavailable", "apns"): ("failed", "1 of 1 did not arrive; refused: ServiceUnavailable (1)"),
        ("settings-lowered", "apns"): ("passed", ""),
        ("handshake-fails", "apns"): ("failed", "1 of 1 did not arrive"),
    }


def test_what_a_simple_sender_of_mails_does_wrong_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "mails.py").write_text(MAILS)
    names = ("accepts", "refused-message", "dropped-connection", "try-later", "answer-lost", "bounce")
    few = [word for name in names for word in ("--case", name)] + ["--patience", "0.5", "--quiet-time", "0.1"]
    command = ["--gateway", "email", "--command", f"{sys.executable} mails.py"]
    status, results = checked(tmp_path, "lab", "check", *command, *few)
    assert status == 1
    assert results == {
        ("accepts", "email"): ("passed", ""),
        ("refused-message", "email"): ("passed", ""),
        ("dropped-connection", "email"): ("passed", ""),
        ("try-later", "email"): (
            "failed",
            "1 of 1 did not arrive; refused: 4.2.0 greylisted, try again later (1)",
        ),
        ("answer-lost", "email"): (
            "failed",
            "the repeated message has another Message-ID, so that a reader sees two",
        ),
        ("bounce", "email"): ("failed", "2 copies were taken, not 1"),
    }


def test_a_check_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither the service nor what it started: each is told by the end of a pipe, as workers are."""
    service = "echo ready; sleep 1000 & echo $! > child; echo $$ > service; exec sleep 1000"
    arguments = ["lab", "check", "--service", service, "--command", "echo $$ > command; exec sleep 1000"]
    with subprocess.Popen([sys.executable, "-m", "waypost.cli", *arguments], cwd=tmp_path) as check:
        files = [tmp_path / name for name in ("child", "service", "command")]
        left = [_number_in(file) for file in files]
        assert {state_of(pid) for pid in left} <= {"S", "R"}
        check.kill()
    for pid in left:
        while state_of(pid) not in "XZ":
            time.sleep(0.02)  # a process is asked from outside


def _number_in(file: Path) -> int:
    while not (file.exists() and file.read_text().endswith("\n")):
        time.sleep(0.02)  # a process is asked from outside
    return int(file.read_text())


def test_a_service_that_does_not_start_is_said_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "waypost.cli", "lab", "check", "--service", "exit 3", "--command", "true"],
        cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "ended with 3" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_command_a_person_is_told_where_to_and_asked_to_send(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "waypost.cli", "lab", "check", "--case", "accepts", "--patience", "0.1"],
        cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60, input="\n",
    )  # fmt: skip
    assert done.returncode == 1  # nobody sent
    assert "LAB_APNS_URL=https://127.0.0.1:" in done.stderr
    assert "press Enter" in done.stderr
    assert "0 passed, 0 failed, 7 not exercised" in done.stdout
