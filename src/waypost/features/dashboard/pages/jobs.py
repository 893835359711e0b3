"""Jobs: bulk sends with their progress, and the schedules that begin anew by themselves."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from litestar import Response

from waypost.domain.errors import NotFound
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page

_SHOWN: Final = 25
_DONE: Final = {
    "pause": "The job is paused: no more recipients are told until it is resumed.",
    "resume": "The job goes on.",
    "cancel": "The job is cancelled.",
}
_SCHEDULED: Final = {
    "pause": "The schedule {} is paused: its times pass without anything being sent.",
    "resume": "The schedule {} goes on with its next time.",
}
_CANCELLED: Final = (
    "No more recipients are told, and retries that wait are cancelled. Deliveries under way end with their present"
    " attempt; whoever was told stays told. It cannot be resumed."
)


@shows("/jobs")
async def jobs(desk: Desk) -> Response[bytes]:
    """List bulk jobs, the newest first, and schedules."""
    found, schedules = await asyncio.gather(
        desk.ask("GET", "/v1/bulk", query={"limit": _SHOWN, "cursor": desk.given("cursor")}),
        desk.ask("GET", "/v1/schedules", query={"limit": _SHOWN, "cursor": desk.given("schedules")}),
    )
    return desk.show("jobs.html", jobs=found, schedules=schedules, done_of=_done_of)


@shows("/jobs/{job:str}", every_s=3)
async def job(desk: Desk) -> Response[bytes]:
    """Show one job and how far it is, without what it says."""
    found = await desk.ask("GET", "/v1/bulk/{}", desk.part("job"))
    return desk.show("job.html", job=found, done=_done_of(found), here=f"/jobs/{found['id']}")


@acts("/jobs/{job:str}/{order:str}", Right.OPERATE)
async def order_job(desk: Desk) -> Response[bytes]:
    """Order a job about; the end of it is asked about first."""
    name, order = desk.part("job"), desk.part("order")
    if order not in _DONE:
        raise NotFound("no such order")
    found = await desk.ask("GET", "/v1/bulk/{}", name)
    here = f"/jobs/{found['id']}"
    if order == "cancel" and "sure" not in desk.form:
        sure = (("sure", "yes"),)
        return desk.confirm(Asking("Cancel this job?", [_CANCELLED], "Cancel it", f"{here}/cancel", sure, True, here))
    await desk.ask("POST", f"/v1/bulk/{{}}/{order}", name)
    return desk.done(_DONE[order], here)


@acts("/jobs/-/schedules/{schedule:str}/{order:str}", Right.OPERATE)
async def order_schedule(desk: Desk) -> Response[bytes]:
    """Pause a schedule, or have it go on."""
    name, order = desk.part("schedule"), desk.part("order")
    if order not in _SCHEDULED:
        raise NotFound("no such order")
    await desk.ask("POST", f"/v1/schedules/{{}}/{order}", name)
    return desk.done(_SCHEDULED[order].format(name), "/jobs")


def _done_of(job: dict[str, Any]) -> float | None:
    """Return the part of those known to be told whose notification has ended."""
    counts = job["counts"]
    has_list = job["uploaded"] and not job["walked"]
    everyone = job["uploaded"] - job["left_out"] if has_list else sum(counts.values())
    settled = sum(n for status, n in counts.items() if status not in {"pending", "processing"})
    return settled / everyone if everyone > 0 else None


PAGE = Page("jobs", "Jobs", [jobs, job, order_job, order_schedule])
