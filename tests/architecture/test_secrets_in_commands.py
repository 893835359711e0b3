"""No command that a page, a help text or a deploy file tells people to run has a secret in its arguments.

Everybody on a machine can read the arguments of its processes (proc(5), /proc/pid/cmdline); what a shell does by itself
(`echo`, `export`) is no process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.trees import ROOT

SHELL = re.compile(r"^[ \t]*```(?:sh|bash|console)\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:waypost|curl|grpcurl|psql|redis-cli) [^`]+)`")
EXAMPLE = re.compile(r"^ {4,}((?:\S.*\| )?(?:waypost|curl) \S.*)$", re.MULTILINE)
BUILT_IN = re.compile(r"^(?:echo|printf|export|read|set|\w+=)\b|^\w+=")
FAULTS = {
    "a secret of the environment": re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|AUTH)\w*\b"),
    "an option that gives a secret": re.compile(r"--(?:token|auth|password|secret|api-key)[ =](?!-(?:\s|$))"),
    "a token of FCM": re.compile(r"\btopics (?:(?:un)?subscribe \S+|list) (?!-\s|fid:)"),
    "a credential in a header": re.compile(r"(?i)(?:bearer|x-api-key:) *(?![`$ ])\S"),
    "a token in a body": re.compile(r"\s(?:-d|--data\S*) *\S*\{.*[\"'](?:token|auth)[\"'] *:"),
    "a user with a password": re.compile(r"\bcurl\b.*\s(?:-u|--user)[ =]|://[^/\s:@]*:[^@\s/$]+@"),
}
ALLOWED_EXPANSION = re.compile(r"'[^']*'")
"""What a shell leaves as it stands: the command itself expands `${NAME}` in it."""


def faults_of(command: str) -> list[str]:
    """What of a command line would be readable by everybody."""
    found: list[str] = []
    for simple in re.split(r"\|\||&&|[|;]\s|\$\(", command.split(" #", maxsplit=1)[0].replace("\\\n", " ")):
        called = simple.strip().removeprefix("$ ")
        if not called or called.startswith("#") or BUILT_IN.match(called):
            continue
        for name, fault in FAULTS.items():
            text = ALLOWED_EXPANSION.sub("", called) if name.startswith("a secret of") else called
            if fault.search(text):
                found.append(f"{name}: {called}")
    return found


def _of_pages() -> Iterator[tuple[Path, str]]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for block in SHELL.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                yield page, line
        for inline in INLINE.findall(text):
            yield page, inline


def _of_help_texts() -> Iterator[tuple[Path, str]]:
    for source in (ROOT / "src" / "waypost").rglob("*.py"):
        for line in EXAMPLE.findall(source.read_text(encoding="utf-8")):
            yield source, line


def _commands_of(document: dict[str, Any]) -> Iterator[list[str] | str]:
    """What a file of Compose, or a resource of Kubernetes, runs."""
    for service in document.get("services", {}).values():
        yield from filter(None, (service.get("command"), service.get("healthcheck", {}).get("test")))
    spec = document.get("spec", {})
    for container in spec.get("template", {}).get("spec", {}).get("containers", ()):
        yield container["args"]


def _of_deploy_files() -> Iterator[tuple[Path, str]]:
    for file in (ROOT / "deploy").rglob("*"):
        if "templates" in file.parts:
            continue  # what Helm makes of them is in deploy/kubernetes
        if file.suffix == ".yaml":
            for said in map(_commands_of, yaml.safe_load_all(file.read_text())):
                for command in said:
                    yield file, " ".join(command) if isinstance(command, list) else command
        elif file.is_file():
            for line in file.read_text().replace("\\\n", " ").splitlines():
                if told := re.match(r"(?:RUN|CMD|ENTRYPOINT|Exec\w+=)\s*(.*)", line):
                    yield file, told[1]


@pytest.mark.parametrize(
    ("commands", "at_least"), [(_of_pages, 150), (_of_help_texts, 60), (_of_deploy_files, 10)]
)  # fmt: skip
def test_no_command_has_a_secret_in_its_arguments(commands: Any, at_least: int) -> None:
    said = list(commands())
    assert len(said) >= at_least
    assert [f"{file.relative_to(ROOT)}: {fault}" for file, line in said for fault in faults_of(line)] == []


@pytest.mark.parametrize(
    "command",
    [
        'curl -H "Authorization: Bearer $WAYPOST_API_KEY" http://127.0.0.1:8080',
        "$ curl -H 'Authorization: Bearer wp_abc' http://127.0.0.1:8080",
        "curl -H 'X-API-Key: wp_abc' http://127.0.0.1:8080",
        """curl -X PUT http://127.0.0.1 -d '{"platform": "ios", "token": "9f86"}'""",
        "curl -u waypost:secret https://push.example.com",
        "waypost devices add alice phone --platform ios --token 9f86d0",
        "waypost devices add alice laptop --token - --auth k8",
        "cat keys | waypost send --platform ios --token=9f86",
        "waypost fcm topics subscribe news cXyz --app demo",
        "waypost move --to postgresql://waypost:secret@db.example/waypost",
        'waypost move --to "postgresql://waypost:${WAYPOST_DB_PASSWORD}@db.example/waypost"',
        "cd /tmp && redis-cli -a $REDIS_PASSWORD ping",
    ],
)
def test_a_secret_in_arguments_is_found(command: str) -> None:
    assert faults_of(command)


@pytest.mark.parametrize(
    "command",
    [
        'echo "Authorization: Bearer $WAYPOST_API_KEY" | curl -H @- http://127.0.0.1:8080',
        "grpcurl -expand-headers -H 'authorization: Bearer ${WAYPOST_API_KEY}' 127.0.0.1:8081 list",
        "waypost move --to 'postgresql://waypost:${WAYPOST_DB_PASSWORD}@db.example/waypost'",
        "export WAYPOST_API_KEY=$(waypost keys create --app demo --caller me)",
        'echo "$TOKEN" | waypost devices add alice phone --platform ios --token -',
        "waypost send alice --idempotency-key order-7",
    ],
)
def test_a_secret_that_no_process_gets_as_an_argument_passes(command: str) -> None:
    assert faults_of(command) == []
