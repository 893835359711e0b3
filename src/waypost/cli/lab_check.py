"""``waypost lab check``: how any sender fares with the answers and accidents the lab has in store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from waypost.cli.printing import as_json_option, console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from waypost.cli.lab_senders import SendersUnderCheck
    from waypost.lab.check.judgement import Result
    from waypost.lab.check.run import CheckOrder, CheckReport
    from waypost.lab.settings import LabSettings

VERDICTS = ("passed", "failed", "not exercised")


@click.command(short_help="Run a sender through its test cases and report.")
@click.option("--command", help="Run in a shell for every round of every case; without it you are asked to send.")
@click.option("--service", help="Run in a shell throughout; it is ready with its first line on standard output.")
@click.option("--sender", "senders", multiple=True, metavar="CHANNEL", help="Check Waypost's own; may be repeated.")
@click.option("--gateway", "gateways", multiple=True, metavar="NAME", help="Only this; may be repeated.")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this; may be repeated.")
@click.option("--list", "list_cases", is_flag=True, help="Say what the cases are, and end.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path("lab"),
    show_default=True,
    help="Where the credentials are kept, and the log of what was run.",
)
@click.option("--patience", "patience_s", default=60.0, show_default=True, help="Seconds for what must come.")
@click.option("--quiet-time", "quiet_s", default=2.0, show_default=True, help="Seconds for what must not come.")
@click.option("--apns-port", default=0, help="0, the default, is any free one, also below.")
@click.option("--fcm-port", default=0)
@click.option("--webpush-port", default=0)
@click.option("--oauth-port", default=0)
@as_json_option
def check(  # noqa: PLR0913 - one argument an option
    *,
    command: str | None,
    service: str | None,
    senders: tuple[str, ...],
    gateways: tuple[str, ...],
    cases: tuple[str, ...],
    list_cases: bool,
    directory: Path,
    patience_s: float,
    quiet_s: float,
    as_json: bool,
    **ports: Any,
) -> None:
    """Start the lab and see whether a sender, this product's or another's, does what each case asks for.

    With --sender that is Waypost, with the sender of a channel that has its counterpart in the lab, as a plug-in does.
    Exit code 0: nothing failed and something was tried; 1: otherwise. The command finds addresses, files and what to
    send in LAB_… environment variables; docs/lab.md lists them.

    \b
    Examples:
      waypost lab check --list
      waypost lab check --sender sms
      waypost lab check --command ./send-to-targets --gateway apns --json
      waypost lab check --service "waypost serve --config waypost.yaml" --command ./send-to-targets
    """
    from waypost.lab.check.cases import GATEWAYS
    from waypost.lab.check.course import Patience
    from waypost.lab.check.run import CheckOrder
    from waypost.lab.settings import LabSettings

    if list_cases:
        _print_cases()
        return
    settings = LabSettings(directory=directory, admin_port=0, **ports)
    own = _own(senders, directory, excluded=command or service)
    order = CheckOrder(
        command=command,
        service=service if own is None else own.service,
        sender=own,
        cases=cases,
        gateways=gateways or (GATEWAYS if own is None else own.gateways),
        patience=Patience(patience_s, quiet_s),
    )
    ready = own.configure if own is not None else _say_nothing if command is not None else _say_where
    report = _run(settings, order, ready)
    _print_report(report, as_json=as_json)
    if not report.good:
        raise click.ClickException(f"{report.count('failed')} failed, {report.count('passed')} passed")


def _print_cases() -> None:
    from waypost.lab.check.cases import CASES

    rows = [(case.name, ", ".join(case.gateways), case.says) for case in CASES]
    console().print(table(("case", "gateways", "what must come of it"), rows))


def _own(channels: tuple[str, ...], directory: Path, *, excluded: str | None) -> SendersUnderCheck | None:
    if not channels:
        return None
    from waypost.cli.lab_senders import senders_under_check

    if excluded:
        raise click.UsageError("--sender serves and sends by itself: leave --command and --service out.")
    try:
        return click.get_current_context().with_resource(senders_under_check(channels, directory))
    except ValueError as unknown:
        raise click.BadParameter(f"{unknown}.", param_hint="--sender") from None


def _run(settings: LabSettings, order: CheckOrder, ready: Callable[[dict[str, str]], None]) -> CheckReport:
    """Run the check; what it cannot be done for becomes a line for people."""
    from waypost.lab.check.run import chosen, run_check

    try:
        chosen(order)
    except ValueError as unknown:
        raise click.UsageError(f"{unknown}.") from None
    logs = settings.directory
    try:
        return run_check(settings, order, ready=ready, done=_say)
    except TimeoutError:
        raise click.ClickException(f"the service said nothing in time; its log is in {logs}") from None
    except OSError as failed:
        raise click.ClickException(f"the check cannot start: {failed}; logs are in {logs}") from None


def _say_where(environment: dict[str, str]) -> None:
    """Print the addresses and files for whoever is about to set a sender up by hand."""
    for name, value in environment.items():
        if name.startswith("LAB_"):
            click.echo(f"{name}={value}", err=True)


def _say_nothing(environment: dict[str, str]) -> None:
    """Print nothing: a command reads the variables from its environment."""


def _say(result: Result) -> None:
    click.echo(f"{result.case}, {result.gateway}: {result.verdict}{f', {result.why}' * bool(result.why)}", err=True)


def _print_report(report: CheckReport, *, as_json: bool) -> None:
    counts = {verdict.replace(" ", "_"): report.count(verdict) for verdict in VERDICTS}
    if as_json:
        results = [
            {"case": result.case, "gateway": result.gateway, "verdict": result.verdict, "why": result.why}
            for result in report.results
        ]
        print_json({**counts, "results": results})
        return
    rows = [(result.case, result.gateway, result.verdict, result.why) for result in report.results]
    console().print(table(("case", "gateway", "verdict", "why"), rows))
    console().print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))
