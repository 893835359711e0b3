"""``waypost templates``: files of templates to the API and back, previews, and translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from waypost.cli.composing import pair
from waypost.cli.connect import api_options
from waypost.cli.printing import as_json_option, console, plain, print_json, table

if TYPE_CHECKING:
    from types import ModuleType

    from waypost.client import Client
    from waypost.client.types import Json

version_option = click.option("--version", type=click.IntRange(min=1), help="The version, by its number.")
variable_option = click.option(
    "--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable, JSON or text; may be repeated."
)


@click.group(short_help="Write what messages say, by channel and language.")
def templates() -> None:
    """Write, preview, publish and translate templates.

    \b
    Examples:
      waypost templates put order-shipped order-shipped.yaml
      waypost templates preview order-shipped --var name=Ann --locale pt-BR
      waypost templates publish order-shipped
      waypost templates export order-shipped --locale pl --out order-shipped.pl.xlf
    """


@templates.command("list", short_help="List templates.")
@api_options
@as_json_option
def list_(client: Client, as_json: bool) -> None:
    """List all templates of the app by name, with their versions.

    \b
    Examples:
      waypost templates list --json
    """
    found = list(client.each(client.templates, limit=500))
    if as_json:
        print_json({"items": found})
        return
    rows = [(each["name"], each["published"], each["draft"], each["retired_at"]) for each in found]
    console().print(table(("template", "published", "draft", "retired"), rows) if rows else "no templates")


@templates.command(short_help="Write the draft of a template from a file.")
@click.argument("name")
@click.argument("file", type=click.File())
@click.option("--publish", is_flag=True, help="Publish it at once.")
@api_options
@as_json_option
def put(client: Client, name: str, file: TextIO, publish: bool, as_json: bool) -> None:
    """Write the draft of the template NAME from FILE, in YAML or JSON; - is standard input.

    \b
    Examples:
      waypost templates put order-shipped order-shipped.yaml
      waypost templates put order-shipped - --publish < order-shipped.json
    """
    saved = client.put_template(name, _object_in(file.read()))
    if publish:
        client.publish_template(name, saved["version"])
    if as_json:
        print_json(saved)
    else:
        console().print(f"{name}: version {saved['version']} {'is published' if publish else 'is the draft'}")


@templates.command(short_help="Print a version of a template.")
@click.argument("name")
@version_option
@api_options
@as_json_option
def get(client: Client, name: str, version: int | None, as_json: bool) -> None:
    """Print the content of the template NAME, so that it can be changed and put again.

    \b
    Examples:
      waypost templates get order-shipped --version 3 > order-shipped.yaml
    """
    import yaml

    content = client.template(name, version)["content"]
    print_json(content) if as_json else click.echo(yaml.safe_dump(content, allow_unicode=True, sort_keys=False))


@templates.command(short_help="Publish the draft, or an older version again.")
@click.argument("name")
@version_option
@api_options
@as_json_option
def publish(client: Client, name: str, version: int | None, as_json: bool) -> None:
    """Have submissions say the draft of the template NAME from now on, or another version of it.

    \b
    Examples:
      waypost templates publish order-shipped
      waypost templates publish order-shipped --version 3
    """
    answer = client.publish_template(name, version)
    print_json(answer) if as_json else console().print(f"{name}: version {answer['published']} is published")


@templates.command(short_help="Refuse submissions that name a template.")
@click.argument("name")
@api_options
@as_json_option
def retire(client: Client, name: str, as_json: bool) -> None:
    """Refuse submissions that name the template NAME, until a version of it is published again.

    \b
    Examples:
      waypost templates retire order-shipped
    """
    client.retire_template(name)
    print_json({"name": name}) if as_json else console().print(f"{name} is retired")


@templates.command(short_help="Show what each platform would be sent.")
@click.argument("name")
@variable_option
@click.option("--locale", help="The language; the template's default if left out.")
@click.option("--time-zone", help="The time zone of dates; UTC if left out.")
@version_option
@api_options
@as_json_option
def preview(
    client: Client,
    name: str,
    variables: tuple[str, ...],
    locale: str | None,
    time_zone: str | None,
    version: int | None,
    as_json: bool,
) -> None:
    """Show what each platform would be sent by the draft of the template NAME, and how large that is.

    \b
    Examples:
      waypost templates preview order-shipped --var name=Ann --var items=3 --locale pt-BR
      waypost templates preview order-shipped --version 3 --json
    """
    asked = {"variables": _values(variables), "locale": locale, "time_zone": time_zone, "version": version}
    answer = client.preview_template(name, **asked)
    if as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        _print_item(item)


@templates.command(short_help="Send the draft of a template to a user, to try it.")
@click.argument("name")
@click.argument("user_id")
@variable_option
@click.option("--locale", help="The language; the user's own if left out.")
@version_option
@api_options
@as_json_option
def send(
    client: Client,
    name: str,
    user_id: str,
    variables: tuple[str, ...],
    locale: str | None,
    version: int | None,
    as_json: bool,
) -> None:
    """Send the draft of the template NAME to USER_ID, or another version of it; the published one if there is no draft.

    \b
    Examples:
      waypost templates send order-shipped alice --var name=Alice --var items=3
    """
    known = next((each for each in client.each(client.templates, limit=500) if each["name"] == name), None)
    if known is None:
        raise click.UsageError(f"there is no template {name}")
    number = version or known["draft"] or known["published"]
    said: Any = {"user_id": user_id, "template": {"name": name, "version": number}, "variables": _values(variables)}
    answer = client.send(said | ({} if locale is None else {"locale": locale}))
    print_json(answer) if as_json else console().print(f"{answer['id']}: version {number} to {plain(user_id)}")


@templates.command("export", short_help="Write the texts of a template for a translator.")
@click.argument("name")
@click.option("--locale", required=True, help="The language to translate into.")
@click.option("--out", type=click.Path(path_type=Path), help="The file; standard output if left out.")
@version_option
@api_options
@as_json_option
def export(client: Client, name: str, locale: str, out: Path | None, version: int | None, as_json: bool) -> None:
    """Write the texts of the template NAME in its default language, with what there is of them in --locale.

    They are XLIFF 1.2, or with --json the texts of --locale as the template has them.

    \b
    Examples:
      waypost templates export order-shipped --locale pl --out order-shipped.pl.xlf
      waypost templates export order-shipped --locale pl --json > order-shipped.pl.json
    """
    content = client.template(name, version)["content"]
    if not as_json:
        try:
            data: bytes = _translations().to_xliff(name, content, locale)
        except ValueError as unknown:
            raise click.BadParameter(str(unknown), param_hint="--locale") from None
    else:
        texts = content.get("texts", {})
        said = texts.get(locale) or texts.get(content.get("default_locale", "en"), {})
        data = json.dumps({locale: said}, ensure_ascii=False, indent=2).encode()
    if out is None:
        click.echo(data)
    else:
        out.write_bytes(data)


@templates.command("import", short_help="Put translated texts into the draft of a template.")
@click.argument("name")
@click.argument("file", type=click.File("rb"))
@api_options
@as_json_option
def import_(client: Client, name: str, file: BinaryIO, as_json: bool) -> None:
    """Put the texts in FILE, XLIFF 1.2 or JSON by language, into a new draft of the template NAME; the others stay.

    \b
    Examples:
      waypost templates import order-shipped order-shipped.pl.xlf
    """
    data = file.read()
    known = next((each for each in client.each(client.templates, limit=500) if each["name"] == name), None)
    content = client.template(name, None if known is None else known["draft"])["content"]
    for locale, texts in _translated(data).items():
        content.setdefault("texts", {}).setdefault(locale, {}).update(texts)
    saved = client.put_template(name, content)
    print_json(saved) if as_json else console().print(f"{name}: version {saved['version']} is the draft")


def _translated(data: bytes) -> Json:
    """Read the texts of each language in a file."""
    try:
        if data.lstrip()[:1] == b"<":
            found = _translations().from_xliff(data)
            return {found.locale: found.texts}
        return _object_in(data.decode())
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="FILE") from None


def _translations() -> ModuleType:
    try:
        from waypost.cli import translations
    except ModuleNotFoundError:
        from waypost.domain.extras import how_to_install

        raise click.ClickException(f"It is not installed here: {how_to_install('templates')}") from None
    return translations


def _object_in(text: str) -> Json:
    """Read an object from YAML, of which JSON is a part."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise click.BadParameter(f"is no YAML or JSON: {wrong}", param_hint="FILE") from None
    if not isinstance(found, dict):
        raise click.BadParameter("holds no object", param_hint="FILE")
    return found


def _values(variables: tuple[str, ...]) -> Json:
    """Read variables: what is JSON as that, anything else as a text."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return {name: value(text) for name, text in (pair(each, "--var") for each in variables)}


def _print_item(item: Json) -> None:
    out = console()
    if item["fails"] is not None:
        out.print(f"[bold]{item['platform']}[/]  [red]fails[/]: {plain(item['fails']['reason'])}")
        return
    rendered = item["rendered"]
    if rendered is None:
        size = "the app has no account there"
    else:
        size = f"{rendered['size_bytes']} of {rendered['limit_bytes']}"
        size += " bytes" if item["segments"] is None else f" characters, {item['segments']} segments"
        if rendered.get("refused"):
            size += f"  [red]refused[/]: {plain(rendered['refused'])}"
    out.print(f"[bold]{item['platform']}[/]  {item['channel']}  {size}")
    for name, text in item["texts"].items():
        out.print(f"  {name}: {text}", markup=False)
