"""``waypost demo``: everything at once on this machine, against the provider lab."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from msgspec import Struct

from waypost.cli.children import Children
from waypost.cli.printing import colored, console

if TYPE_CHECKING:
    from waypost.cli.demo_site import DemoSite
    from waypost.cli.lab_admin import LabAdmin
    from waypost.client import Client, NotificationView, Submission, SubmittedDevice

APP, USER = "demo", "user-1"
FINAL_TIMEOUT_S = 30.0
NOTIFICATION: Submission = {
    "user_id": USER,
    "title": "Your parcel is here",
    "body": "Left at the front door.",
    "urgency": "high",
    "link": "https://example.com/parcels/7",
    "data": {"parcel": "7"},
}
GATEWAY_OF = {"apns": "APNs", "fcm": "FCM", "webpush": "Web Push"}


class Running(Struct, frozen=True):
    """The started processes, and the ways to talk to them."""

    folder: Path
    url: str
    key: str
    admin_url: str
    dashboard: str
    """With the token that opens it."""
    client: Client
    lab: LabAdmin
    site: DemoSite


@click.command(short_help="Start everything here and send one notification to three devices.")
@click.option(
    "--once", is_flag=True, help="Exit after the first notification, with 0 only if all three devices got it."
)
def demo(once: bool) -> None:
    """Start the provider lab and Waypost, register three devices, send a notification, show how it travelled.

    Everything is in a temporary folder that is gone afterwards.

    \b
    Examples:
      waypost demo
      waypost demo --once
    """
    with tempfile.TemporaryDirectory(prefix="waypost-demo-") as scratch, Children(Path(scratch)) as children:
        try:
            running = _start(Path(scratch), children)
            arrived = _travel(running)
            if not once:
                _stay(running, children)
        except KeyboardInterrupt:
            click.echo("\nStopping.")
            return
    if once and not arrived:
        raise click.ClickException("not every device got the notification")


def _start(folder: Path, children: Children) -> Running:
    from waypost.bootstrap.dashboard import dashboard_door
    from waypost.bootstrap.registry import load
    from waypost.cli.demo_site import DemoSite
    from waypost.cli.keys import make_key
    from waypost.cli.lab_admin import LabAdmin
    from waypost.client import Client

    environ = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    out = console()
    out.print("[bold]1. Start[/]")
    ports = [f"--{name}-port=0" for name in ("apns", "fcm", "webpush", "oauth", "admin")]
    lab = children.start("lab", ["lab", "--directory", str(folder / "lab"), *ports], environ)
    out.print(f"   the lab stands in for Apple at {lab['apns']}, Google at {lab['fcm']}, browsers at {lab['webpush']}")
    path = folder / "waypost.yaml"
    site = DemoSite(USER)
    path.write_text(yaml.safe_dump(_configuration(lab, site, folder), sort_keys=False))
    config = load(path, environ)
    key, _ = asyncio.run(make_key(config, APP, "demo"))
    serve = children.start("waypost", ["serve", "--config", str(path)], environ)
    out.print(f"   Waypost answers at {serve['url']}, with {serve['workers']} workers on one SQLite file")
    client = Client(serve["url"], key)
    opened = dashboard_door(config, serve["url"]).url
    return Running(folder, serve["url"], key, lab["admin"], opened, client, LabAdmin(lab["admin"]), site)


def _configuration(lab: dict[str, Any], site: DemoSite, folder: Path) -> dict[str, Any]:
    """Build the file as an operator would write it; the lab's addresses take the place of the providers'."""
    files = Path(lab["directory"])
    ca_file = str(files / "ca.pem")
    apns = {"key_file": str(files / "AuthKey.p8"), "key_id": "ABCDE12345", "team_id": "FGHIJ67890"}
    apns |= {"topic": "com.example.demo", "endpoint": lab["apns"], "ca_file": ca_file}
    fcm = {"service_account_file": str(files / "fcm.json"), "endpoint": lab["fcm"], "ca_file": ca_file}
    webpush = {"vapid_private_key_file": str(files / "vapid.pem"), "subject": "mailto:ops@example.com"}
    push = webpush | {"allow_endpoints": [lab["webpush"]], "ca_file": ca_file}
    users = {"inapp": {}, "issuers": {"shop": site.issuer(folder)}}
    apps = {APP: {"apns": apns, "fcm": fcm, "webpush": push, **users}}
    listen = {"listen": "127.0.0.1:0", "rest": {"cors_origins": site.origins}}
    return {"store": "sqlite:///waypost.db", "workers": 2, **listen, "apps": apps}


def _travel(running: Running) -> bool:
    """Register three devices, send, and show the way; whether all three got it, and could read it."""
    from waypost.cli.journey import draw

    out = console()
    out.print(f"\n[bold]2. Register[/] three devices of {USER}")
    tokens = _register(running)
    out.print("\n[bold]3. Send[/] one notification")
    answer = running.client.send(NOTIFICATION)
    out.print(f"   202 Accepted: durable, its id is {answer['id']}")
    detail = running.client.wait(answer["id"], FINAL_TIMEOUT_S)
    out.print("\n[bold]4. How it travelled[/]")
    draw(detail)
    out.print(
        "\n[bold]5. What the providers saw[/], checked as the real ones check, and decrypted with the devices' keys"
    )
    received = running.lab.received(answer["id"])
    for record in received:
        _print_received(record)
    verdict = running.lab.verify(answer["id"], tokens)
    arrived = bool(verdict["ok"]) and _readable(received) == set(GATEWAY_OF) and _all_sent(detail)
    out.print(f"   {'each device once, nothing else' if arrived else '[red]not as it should be[/]'}")
    return arrived


def _register(running: Running) -> list[str]:
    web = running.lab.subscription()
    devices: dict[str, SubmittedDevice] = {
        "phone": {"platform": "ios", "token": running.lab.token("ios"), "locale": "en-GB"},
        "tablet": {"platform": "android", "token": running.lab.token("android")},
        "laptop": {"platform": "web", "token": web["endpoint"], "keys": web["keys"]},
    }
    for device_id, device in devices.items():
        answer = running.client.add_device(USER, device_id, device)
        console().print(f"   {device_id}: {device['platform']}, token {answer['device']['token_hash']} (a hash)")
    return [device["token"] for device in devices.values()]


def _print_received(record: dict[str, Any]) -> None:
    verdict = colored("taken") if record["accepted"] else f"{colored('refused')} {record['reason']}"
    gateway = GATEWAY_OF.get(record["gateway"], record["gateway"])
    console().print(f"   {gateway:<9} {record['status']} {verdict}  {record.get('bytes', '?')} bytes on the wire")
    console().print(f"             {json.dumps(record.get('payload'), ensure_ascii=False)}", markup=False)


def _readable(received: list[dict[str, Any]]) -> set[str]:
    """List the gateways that took it and whose device could read the title."""
    return {
        record["gateway"]
        for record in received
        if record["accepted"] and NOTIFICATION["title"] in str(record.get("payload"))
    }


def _all_sent(detail: NotificationView) -> bool:
    return len(detail["receipts"]) == 3 and all(receipt["status"] == "sent" for receipt in detail["receipts"])


def _stay(running: Running, children: Children) -> None:
    out = console()
    running.site.start(running.url, lambda said: _send_form(running.client, said))
    out.print("\n[bold]6. Go on yourself[/]")
    out.print(f"   the inbox    {running.site.origin}  [bold]open it in a browser, and send to yourself[/]")
    out.print(f"   dashboard    {running.dashboard}")
    out.print(f"   API          {running.url}")
    out.print(f"   reference    {running.url}/docs")
    out.print(f"   lab          {running.admin_url}/received")
    out.print(f"   files, logs  {running.folder}")
    out.print(f"   export WAYPOST_URL={running.url} WAYPOST_API_KEY={running.key}")
    out.print(f'   {_this_command()} send {USER} --title "Hello again" --channel inapp --channel push --wait')
    out.print("   Stop with Ctrl-C.")
    children.wait()


def _send_form(client: Client, said: dict[str, Any]) -> str:
    """Send what the page's form says, as the shop's backend."""
    channels: list[Any] = ["inapp", *(["push"] if said.get("push") else [])]
    content = {name: said[name] for name in ("title", "body", "link") if said.get(name)}
    submission: Any = {"user_id": USER, "channels": channels, "dedup_window": 0, **content}
    return client.send(submission)["id"]


def _this_command() -> str:
    """Name us as a shell finds us: by name where it can, otherwise as we were called (``.venv/bin/waypost``)."""
    called = sys.argv[0]
    return called if called.endswith("waypost") and shutil.which("waypost") is None else "waypost"
