"""``waypost stacks``: what each stack promises of the work that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from waypost.cli.printing import as_json_option, console, print_json, table

if TYPE_CHECKING:
    from waypost.ports.promises import Promise

BEGIN: Final = "<!-- generated: waypost stacks --markdown -->"
END: Final = "<!-- end of generated -->"


@click.command(short_help="Say which stack keeps which promise.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the tables as docs/stacks.md has them.")
@as_json_option
def stacks(as_markdown: bool, as_json: bool) -> None:
    """List every promise of accepted work, which stack keeps it, and what happens where it is not kept.

    \b
    Examples:
      waypost stacks
      waypost stacks --json
    """
    from waypost.bootstrap.promises import lacks_of
    from waypost.config import Stack

    if as_markdown:
        click.echo(markdown())
        return
    lacks = {str(stack): {str(each): text for each, text in lacks_of(stack).items()} for stack in Stack}
    if as_json:
        print_json({"promises": {str(each): text for each, text in meanings().items()}, "lacks": lacks})
        return
    rows = [
        (promise, *("no" if promise in lacked else "yes" for lacked in lacks.values()), meaning)
        for promise, meaning in meanings().items()
    ]
    console().print(table(("promise", *lacks, "what it is"), rows))
    for stack, lacked in lacks.items():
        for promise, instead in lacked.items():
            console().print(f"{stack} lacks {promise}: {instead}")


def meanings() -> dict[Promise, str]:
    """Say of each promise in one sentence what it is."""
    from waypost.config.reference import texts_under_names
    from waypost.ports.promises import Promise

    texts = texts_under_names(Promise)
    return {each: texts[each.name].replace("``", "`") for each in Promise}


def markdown() -> str:
    """Write the tables of docs/stacks.md: promises by stack, and what happens where one is lacked."""
    from waypost.bootstrap.promises import lacks_of
    from waypost.config import Stack

    head = f"| promise | {' | '.join(Stack)} |\n|---|{'---|' * len(Stack)}\n"
    rows = "".join(
        f"| `{promise}`: {meaning} | {' | '.join('no' if promise in lacks_of(each) else 'yes' for each in Stack)} |\n"
        for promise, meaning in meanings().items()
    )
    instead = "".join(
        f"| {stack} | `{promise}` | {text} |\n" for stack in Stack for promise, text in lacks_of(stack).items()
    )
    return f"{BEGIN}\n{head}{rows}\n| stack | lacks | instead |\n|---|---|---|\n{instead}{END}"
