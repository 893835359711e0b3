"""Templates: list and read them, preview what each platform would be sent, write drafts, publish and try them."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec
from litestar import Response

from waypost.domain.errors import Fault, InvalidRequest, WaypostError
from waypost.entrypoints.rest.problems import problem_of
from waypost.features.dashboard.desk import Asking, Desk
from waypost.features.dashboard.handling import acts, shows
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.ports.audit import Act

_SHOWN: Final = 50
_EXAMPLE: Final = """{
  "channels": {
    "default": {"title": "Hello {{ name }}", "body": "Your order {{ order }} is on its way."}
  },
  "default_locale": "en",
  "variables": {
    "name": {"default": "there", "example": "Ann"},
    "order": {"required": true, "example": "A-42"}
  }
}"""


@shows("/templates")
async def templates(desk: Desk) -> Response[bytes]:
    """List templates by name."""
    found = await desk.ask("GET", "/v1/templates", query={"limit": _SHOWN, "cursor": desk.given("cursor")})
    return desk.show("templates.html", templates=found["items"], following=found["next"])


@shows("/templates/-/new", Right.CAMPAIGN)
async def new_template(desk: Desk) -> Response[bytes]:
    """Show the form of a new template."""
    return desk.show("template_new.html", name="", content=_EXAMPLE, problem=None)


@acts("/templates/-/new", Right.CAMPAIGN)
async def write_template(desk: Desk) -> Response[bytes]:
    """Write a draft; what is wrong with it is said above the form, which keeps what was entered."""
    name, content = desk.form.get("name", "").strip(), desk.form.get("content", "")
    try:
        if not name:
            raise InvalidRequest((Fault("name", "required"),))
        saved = await desk.ask("PUT", "/v1/templates/{}", name, body=_json(content, "content"))
    except WaypostError as error:
        problem = problem_of(error)
        return desk.show("template_new.html", problem.status, name=name, content=content, problem=problem)
    said = f"Draft {saved['version']} is written; nothing says it before it is published."
    return desk.done(said, f"/templates/{name}", version=str(saved["version"]))


@shows("/templates/{template:str}")
async def template(desk: Desk) -> Response[bytes]:
    """Show one version, its preview by platform, and the versions that there are."""
    name, number = desk.part("template"), desk.given("version")
    found = await desk.ask("GET", "/v1/templates/{}", name, query={"version": number})
    versions = await desk.ask("GET", "/v1/templates/{}/versions", name)
    items, problem = await _preview(desk, name, found["version"])
    return desk.show(
        "template.html",
        t=found,
        here=f"/templates/{quote(name, safe='')}",
        versions=versions["items"],
        content=msgspec.json.format(msgspec.json.encode(found["content"])).decode(),
        locales=sorted(found["content"].get("texts", {})),
        locale=desk.given("locale") or "",
        variables=desk.given("variables") or "",
        items=items,
        problem=problem,
    )


@acts("/templates/{template:str}/publish", Right.CAMPAIGN)
async def publish_template(desk: Desk) -> Response[bytes]:
    """Publish a version, saying first what that does."""
    name, version = desk.part("template"), desk.form.get("version", "")
    number = _number(version)
    if "sure" not in desk.form:
        what = (
            "Submissions and campaigns that name the template say this version from now on.",
            "What was accepted before says the version of then.",
        )
        fields = (("version", version), ("sure", "yes"))
        here = f"/templates/{name}"
        title = f"Publish version {version} of {name}?"
        return desk.confirm(Asking(title, what, "Publish it", f"{here}/publish", fields, back=here))
    await desk.ask("POST", "/v1/templates/{}/publish", name, body={"version": number})
    return desk.done(f"Version {version} is published.", f"/templates/{name}")


@acts("/templates/{template:str}/retire", Right.CAMPAIGN)
async def retire_template(desk: Desk) -> Response[bytes]:
    """Retire a template, saying first what that does."""
    name = desk.part("template")
    if "sure" not in desk.form:
        what = "Submissions that name it are refused until a version is published again. What was accepted is sent."
        here, sure = f"/templates/{name}", (("sure", "yes"),)
        return desk.confirm(Asking(f"Retire {name}?", [what], "Retire it", f"{here}/retire", sure, back=here))
    await desk.ask("DELETE", "/v1/templates/{}", name)
    return desk.done(f"{name} is retired.", "/templates")


@acts("/templates/{template:str}/try", Right.CAMPAIGN)
async def try_template(desk: Desk) -> Response[bytes]:
    """Send a version to one user, with the examples for what is not given; its story is shown next."""
    name, version = desk.part("template"), _number(desk.form.get("version", ""))
    found = await desk.ask("GET", "/v1/templates/{}", name, query={"version": version})
    known = found["content"].get("variables", {})
    examples = {each: said["example"] for each, said in known.items() if said.get("example") is not None}
    body: dict[str, Any] = {
        "user_id": desk.form.get("user", "").strip(),
        "template": {"name": name, "version": version},
        "variables": examples | _json(desk.form.get("variables", "").strip() or "{}", "variables"),
    }
    if locale := desk.form.get("locale", "").strip():
        body["locale"] = locale
    await desk.record(Act.TEMPLATE_TRIED, [f"{name} {version}"])
    told = await desk.ask("POST", "/v1/notifications", body=body)
    return desk.done("Sent as a test: this is what becomes of it.", f"/events/{told['id']}")


async def _preview(desk: Desk, name: str, version: int) -> tuple[list[dict[str, Any]], Any]:
    """Return what each platform would be sent, or what is wrong with what was given."""
    try:
        body: dict[str, Any] = {"version": version, "variables": _json(desk.given("variables") or "{}", "variables")}
        if locale := desk.given("locale"):
            body["locale"] = locale
        found = await desk.ask("POST", "/v1/templates/{}/preview", name, body=body)
    except WaypostError as error:
        return [], problem_of(error)
    return found["items"], None


def _number(version: str) -> int:
    if not (version.isascii() and version.isdigit()):
        raise InvalidRequest((Fault("version", "no number"),))
    return int(version)


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest((Fault(name, f"no JSON: {error}"),)) from None
    if not isinstance(said, dict):
        raise InvalidRequest((Fault(name, "no JSON object"),))
    return said


PAGE = Page(
    "templates",
    "Templates",
    [templates, new_template, write_template, template, publish_template, retire_template, try_template],
)
