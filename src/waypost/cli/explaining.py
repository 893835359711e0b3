"""``waypost explain``: what would happen to a notification; nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from waypost.cli.composing import composed, notification_options
from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, plain, print_json

if TYPE_CHECKING:
    from waypost.client import Client


@click.command(short_help="Show what would happen to a notification, without sending it.")
@notification_options
@api_options
@as_json_option
def explain(client: Client, as_json: bool, **fields: Any) -> None:
    """Show where a notification for USER_ID would go: targets, rendered bytes and sizes, or the reasons why not.

    \b
    Examples:
      waypost explain alice --title "Your parcel is here"
      waypost explain alice --title Hi --data order=7 --json
    """
    answer = client.explain(composed(fields))
    if as_json:
        print_json(answer)
        return
    out = console()
    for target in answer["targets"]:
        _print_target(target)
    if answer["time_zone"] is not None:
        due = answer["scheduled_at"] or "at once: that time is over there"
        whose = {"user": "the user's", "app": "the app's"}.get(answer["time_zone_of"], "since nobody's is known")
        out.print(f"due {due}, in the zone {answer['time_zone']} ({whose})")
    if (best := answer["best_time"]) is not None and best["hour"] is None:
        out.print("too little was read to know the best hour")
    elif best is not None:
        habit = {"user": "the user reads", "app": "users of the app read"}[best["based_on"]]
        out.print(f"the best hour is {best['hour']:02}:00, when {habit} {best['rate']:.0%} of what is sent")
    if not answer["targets"]:
        out.print("no targets: this user has no device that these channels reach")
    for said in answer["routing"]:
        out.print(f"  rule {said['rule']}: {said['device_id']} {said['verdict']} {said['reason']}", markup=False)
    claims = ", ".join(answer["dedup"])
    out.print(f"repeats are recognised by: {claims}" if claims else "no dedup key: a repeat is sent again")


def _print_target(target: dict[str, Any]) -> None:
    out = console()
    if target["suppressed"]:
        out.print(f"[bold]{plain(target['device_id'])}[/]  [yellow]left out[/]: {plain(target['suppressed'])}")
        return
    rendered = target["rendered"]
    if rendered is None:
        out.print(f"[bold]{plain(target['device_id'])}[/]  [yellow]waits[/]")
        return
    size = f"{rendered['size_bytes']} of {rendered['limit_bytes']} bytes"
    refused = rendered.get("refused")
    verdict = f"[red]refused[/]: {plain(refused)}" if refused else "[green]would be sent[/]"
    if target["waits_for"]:
        verdict += f", unless {plain(' or '.join(target['waits_for']))} is confirmed in time"
    out.print(f"[bold]{plain(target['device_id'])}[/]  {target['credential']}  {verdict}  {size}")
    for name, value in rendered["headers"].items():
        out.print(f"  {name}: {value}", markup=False)
    body = rendered.get("body") or f"{rendered.get('body_base64', '')} (base64)"
    out.print(f"  {body}", markup=False)
