"""``waypost bulk``: one notification to many recipients, and how far it has come."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from waypost.cli.composing import message_options, pair, read_object
from waypost.cli.connect import api_options
from waypost.cli.lists import media_of, open_list
from waypost.cli.printing import as_json_option, colored, console, print_json, progress, short_time, table

if TYPE_CHECKING:
    from waypost.client import Client

POLL_S = 0.5
UNSETTLED = frozenset({"pending", "processing"})


@click.group(short_help="Tell many recipients at once.")
def bulk() -> None:
    """Send to many recipients at once; follow, pause, resume and cancel the job.

    \b
    Examples:
      waypost bulk send --title "Hello {{name}}" --list people.csv --rate 1000 --wait
      waypost bulk send --title "Version 3 is here" --registry --platform ios
      waypost bulk pause 019c1234-5678-7abc-8def-0123456789ab
    """


@bulk.command(short_help="Start a bulk job.")
@message_options
@click.option("--from", "file", type=click.File(), help="Take the rest of the job from this JSON file.")
@click.option("--to", "recipients", multiple=True, metavar="USER_ID", help="A recipient; may be repeated.")
@click.option("--list", "listed", type=click.Path(path_type=Path), help="A .csv or .ndjson file of recipients.")
@click.option("--segment", help="The users of this segment.")
@click.option("--topic", help="The users who hear this topic of yours.")
@click.option("--registry", is_flag=True, help="Every user with a device, or those that the next options name.")
@click.option("--platform", "platforms", multiple=True, help="Of the registry, only this; may be repeated.")
@click.option("--app-version", "app_versions", multiple=True, help="Of the registry, only this; may be repeated.")
@click.option("--locale", "locales", multiple=True, help="Of the registry, only this, such as de; may be repeated.")
@click.option("--seen-after", metavar="TIME", help="Of the registry, only those seen since.")
@click.option(
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Defaults for recipients without their own value.",
)
@click.option("--rate", type=int, help="The most recipients per second.")
@click.option("--idempotency-key", help="The same key makes the job once.")
@click.option("--wait", is_flag=True, help="Show its progress until it ends.")
@api_options
@as_json_option
def send(
    client: Client,
    listed: Path | None,
    idempotency_key: str | None,
    wait: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Tell many recipients: those named, those of a list, of a segment or topic, or of the registry.

    \b
    Examples:
      waypost bulk send --title "Hello {{name}}" --list people.csv --variable name=friend
      waypost bulk send --title "Version 3 is here" --registry --platform ios --locale de --wait
      waypost bulk send --title "We miss you" --segment lapsed
      waypost bulk send --title Hi --to alice --to bob --json
    """
    with _opened(listed) as recipients:
        job = client.send_bulk(_job(fields, is_upload=recipients is not None), idempotency_key)
        if recipients is not None and job["state"] == "uploading":
            job = client.upload_recipients(job["id"], recipients, media_of(Path(recipients.name), "--list"))
    if wait:
        job = _followed(client, job["id"])
    print_json(job) if as_json else _print(job)


def _opened(listed: Path | None) -> AbstractContextManager[BinaryIO | None]:
    """Open the list, where there is one; refuse it before a job is made that would wait for it."""
    if listed is None:
        return nullcontext()
    media_of(listed, "--list")
    return open_list(listed, "--list")


def _job(fields: dict[str, Any], *, is_upload: bool) -> dict[str, Any]:
    """Build the body of the job; options win over the file."""
    file: TextIO | None = fields.pop("file")
    job: dict[str, Any] = read_object(file) if file is not None else {}
    registry = {name: fields.pop(name) for name in ("platforms", "app_versions", "locales", "seen_after")}
    registry = {name: value for name, value in registry.items() if value not in (None, ())}
    if fields.pop("registry") or registry:
        job["registry"] = job.get("registry", {}) | registry
    chosen = {name: value for name in ("segment", "topic") if (value := fields.pop(name)) is not None}
    if chosen:
        job["to"] = chosen
    if variables := dict(pair(text, "--variable") for text in fields.pop("variables")):
        job["variables"] = job.get("variables", {}) | variables
    if recipients := fields.pop("recipients"):
        job["recipients"] = list(recipients)
    if is_upload:
        job["upload"] = True
    if (rate := fields.pop("rate")) is not None:
        job["rate"] = rate
    data = dict(pair(text, "--data") for text in fields.pop("data"))
    message = {name: value for name, value in fields.items() if value is not None} | ({"data": data} if data else {})
    job["notification"] = job.get("notification", {}) | message
    return job


def _followed(client: Client, job_id: str) -> dict[str, Any]:
    """Follow a job, showing its progress, and return it at its end."""
    with progress() as bar:
        task = bar.add_task("sending", total=None)
        while True:
            job = client.bulk(job_id)
            settled = sum(n for status, n in job["counts"].items() if status not in UNSETTLED)
            bar.update(task, total=job["enqueued"] if job["walked"] else job["uploaded"] or None, completed=settled)
            if job["finished_at"] is not None or job["state"] == "failed":
                return job
            time.sleep(POLL_S)  # the API has no call that waits


@bulk.command()
@click.argument("job_id")
@click.option("--wait", is_flag=True, help="Show its progress until it ends.")
@api_options
@as_json_option
def show(client: Client, job_id: str, wait: bool, as_json: bool) -> None:
    """Show how far JOB_ID has come.

    \b
    Example:
      waypost bulk show 019c1234-5678-7abc-8def-0123456789ab --wait
    """
    job = _followed(client, job_id) if wait else client.bulk(job_id)
    print_json(job) if as_json else _print(job)


@bulk.command("list")
@click.option("--limit", default=50, show_default=True, help="The most entries to show.")
@api_options
@as_json_option
def list_(client: Client, limit: int, as_json: bool) -> None:
    """List jobs, newest first.

    \b
    Example:
      waypost bulk list --limit 10
    """
    answer = client.bulk_jobs(limit=limit)
    if as_json:
        print_json(answer)
        return
    rows = [
        (
            job["id"],
            job["state"],
            job["enqueued"],
            sum(n for status, n in job["counts"].items() if status not in UNSETTLED),
            short_time(job["created_at"]),
        )
        for job in answer["items"]
    ]
    console().print(table(("job", "state", "enqueued", "settled", "made"), rows) if rows else "no jobs")


@bulk.command()
@click.argument("job_id")
@api_options
@as_json_option
def pause(client: Client, job_id: str, as_json: bool) -> None:
    """Pause JOB_ID until it is resumed.

    \b
    Example:
      waypost bulk pause 019c1234-5678-7abc-8def-0123456789ab
    """
    _order(client, job_id, "pause", as_json)


@bulk.command()
@click.argument("job_id")
@api_options
@as_json_option
def resume(client: Client, job_id: str, as_json: bool) -> None:
    """Go on with JOB_ID.

    \b
    Example:
      waypost bulk resume 019c1234-5678-7abc-8def-0123456789ab
    """
    _order(client, job_id, "resume", as_json)


@bulk.command()
@click.argument("job_id")
@api_options
@as_json_option
def cancel(client: Client, job_id: str, as_json: bool) -> None:
    """Cancel JOB_ID: recipients not sent to yet get nothing.

    \b
    Example:
      waypost bulk cancel 019c1234-5678-7abc-8def-0123456789ab
    """
    _order(client, job_id, "cancel", as_json)


def _order(client: Client, job_id: str, order: str, as_json: bool) -> None:
    job = client.order_bulk(job_id, order)
    print_json(job) if as_json else _print(job)


def _print(job: dict[str, Any]) -> None:
    known = "" if job["walked"] else " so far"
    console().print(f"{job['id']} {colored(job['state'])}: {job['enqueued']} recipients{known}")
    if job["failure"]:
        console().print(f"  its last step ended with {job['failure']}: resume it once the cause is gone, or cancel it")
    if job["left_out"]:
        console().print(f"  {job['left_out']} left out")
    for status, n in sorted(job["counts"].items()):
        console().print(f"  {n} {colored(status)}")
    left = job["seconds_left"]
    speed = f"  {job['per_second']:.0f} a second"
    console().print(f"{speed}, {left} s left" if left else speed)
