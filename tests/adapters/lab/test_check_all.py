"""Waypost, as its page sets it up, goes through every case of ``waypost lab check``, and passes."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.adapters.lab.test_check import DOC, FILE, checked
from tests.hurry import HURRIED, PROBED_SOON
from tests.tables import AddRow
from waypost.lab.check.cases import CASES

PATIENT_FOR_LESS = """
from waypost.channels.webhook import sender

sender.WRITTEN_BY_S, sender.ANSWER_BY_S = 3.0, 6.0
"""
"""As ``sitecustomize``. How long a webhook's answer is waited for, 30 s otherwise."""

SEND = """
import base64, http.client, json, os, time

PLATFORMS = {"apns": "ios", "fcm": "android", "webpush": "web", "twilio": "phone", "webhook": "url"}
CHANNELS = {"twilio": "sms", "webhook": "webhook", "email": "email"}
with open(os.environ["LAB_SERVICE_OUTPUT"]) as output:
    host = json.loads(output.readline())["url"].removeprefix("http://")
headers = {"authorization": "Bearer " + open("key").read().strip(), "content-type": "application/json"}
targets = json.load(open(os.environ["LAB_TARGETS_FILE"]))
service = http.client.HTTPConnection(host)


def ask(method, path, body=None):
    service.request(method, path, json.dumps(body) if body else None, headers)
    answer = service.getresponse()
    said = answer.read()
    assert answer.status < 300, said
    return json.loads(said)


if os.environ["LAB_ROUND"] == "1":
    for target in targets:
        platform = PLATFORMS.get(target["gateway"], target["gateway"])
        keys = target.get("subscription", {}).get("keys")
        device = {"platform": platform, "token": target["token"]} | ({"keys": keys} if keys else {})
        ask("PUT", "/v1/devices/" + target["name"] + "/d", device)
else:  # what the first round has taught must be on record, however slow the machine
    for notification in json.load(open("first-round")):
        while ask("GET", "/v1/notifications/" + notification)["notification"]["status"] in ("pending", "processing"):
            time.sleep(0.02)
    if os.environ["LAB_CASE"] == "dead-token-forgotten":  # the registry is told of it a moment later
        while all(ask("GET", "/v1/devices/" + target["name"])["items"] for target in targets):
            time.sleep(0.02)
if "LAB_BOUNCE_FILE" in os.environ:
    login = base64.b64encode(b"lab:" + open(os.environ["LAB_EMAIL_CALLBACK_PASSWORD_FILE"], "rb").read().strip())
    marks = {"authorization": "Basic " + login.decode(), "content-type": "message/rfc822"}
    service.request("POST", "/callbacks/demo/email/default", open(os.environ["LAB_BOUNCE_FILE"], "rb"), marks)
    answer = service.getresponse()
    assert answer.status < 300, answer.read()
    answer.read()
    while ask("GET", "/v1/devices/" + targets[0]["name"])["items"]:
        time.sleep(0.02)
told = []
for target in targets:
    channels = [CHANNELS.get(target["gateway"], "push")]
    told.append({"user_id": target["name"], "title": os.environ["LAB_TEXT"], "channels": channels})
answer = ask("POST", "/v1/notifications/batch", {"notifications": told})
json.dump([result["notification"]["id"] for result in answer["results"]], open("first-round", "w"))
"""


def test_every_case_is_passed_at_every_gateway(tmp_path: Path, table: AddRow) -> None:
    """Silence takes its time, so those cases have a service and a lab of their own meanwhile."""
    names = [case.name for case in CASES]
    halves = [[name for name in names if name.startswith("silent") is silent] for silent in (True, False)]
    with ThreadPoolExecutor(2) as threads:
        halves_done = list(threads.map(_check, (tmp_path / "silent", tmp_path / "others"), halves))
    results = {name: said for done in halves_done for name, said in done.items()}
    for (case, gateway), (verdict, why) in sorted(results.items(), key=lambda each: names.index(each[0][0])):
        table("waypost lab check", case=case, gateway=gateway, verdict=verdict, why=why)
    assert {name: said for name, said in results.items() if said != ("passed", "")} == {}
    assert set(results) == {(case.name, gateway) for case in CASES for gateway in case.gateways}


def _check(directory: Path, names: list[str]) -> dict[tuple[str, str], tuple[str, str]]:
    hook = directory / "hook"
    hook.mkdir(parents=True)
    (hook / "sitecustomize.py").write_text(HURRIED + PROBED_SOON + PATIENT_FOR_LESS)
    (directory / "waypost.yaml").write_text(dict(FILE.findall(DOC))["waypost.yaml"].replace("_s: 10", "_s: 4"))
    (directory / "send.py").write_text(SEND)
    keys = "waypost keys create --app demo --caller check > key"
    port = "export WAYPOST_APPS__DEMO__EMAIL__PORT=$LAB_EMAIL_PORT"
    service = f"{port} && {keys} && PYTHONPATH=hook exec waypost serve --json"
    chosen = [word for name in names for word in ("--case", name)]
    options = ["--service", service, "--command", f"{sys.executable} -I send.py", "--quiet-time", "0.1"]
    return checked(directory, "lab", "check", *options, *chosen)[1]
