"""Routes of templates: write, publish, read and retire them."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import PathParameter, QueryParameter, RawBody

from waypost.domain.content import TemplateUse
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound
from waypost.domain.extras import how_to_install
from waypost.domain.profile import Profile, zone_faults
from waypost.domain.submission import TemplateName
from waypost.domain.template import CONTENT_LIMIT_BYTES, TemplateContent, check
from waypost.entrypoints.access import ADMINISTERS, READS
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import Limit, LongCursor, text_in
from waypost.entrypoints.rest.recording import record
from waypost.features.templates.preview import examples, shown
from waypost.features.templates.rendering import FEATURE
from waypost.features.templates.views import (
    PreviewRequest,
    PreviewView,
    Publishing,
    SavedDraft,
    TemplatePage,
    TemplateSummary,
    TemplateView,
    VersionList,
    preview_item,
    state_of,
    summary,
    version_view,
)
from waypost.ports.audit import Act
from waypost.ports.templates import TemplateRecord, Templates

_E = ErrorCode
_content = msgspec.json.Decoder(TemplateContent)
_preview = msgspec.json.Decoder(PreviewRequest)
_publishing = msgspec.json.Decoder(Publishing)
PathTemplate = Annotated[str, PathParameter(description="The template's name.")]
VersionGiven = Annotated[
    int | None, QueryParameter(ge=1, required=False, description="Omitted: the published one, or else the draft.")
]
EXAMPLE = {
    "channels": {"default": {"title": "{{ 'title' | t }}", "body": "{{ 'items' | t: count: items }}"}},
    "default_locale": "en",
    "variables": {"name": {"required": True, "example": "Ann"}, "items": {"type": "number", "example": 2}},
    "texts": {
        "en": {"title": "Hello {{ name }}", "items": {"one": "{{ count }} item", "other": "{{ count }} items"}},
        "pt": {"title": "Olá {{ name }}", "items": {"one": "{{ count }} item", "other": "{{ count }} itens"}},
    },
}


@put(
    "/v1/templates/{name:str}",
    tags=["Templates"],
    summary="Write a template's draft",
    operation_id="putTemplate",
    opt=speaks(
        {200: SavedDraft},
        ADMINISTERS,
        body=TemplateContent,
        example=EXAMPLE,
        codes=(_E.TOO_LARGE, *WRITE_CODES),
    ),
)
async def put_template(request: Call, name: PathTemplate, body: RawBody) -> Response[bytes]:
    """Write a new version, in place of the draft before. Every text is parsed; nothing is sent by it yet.

    A version never changes. To try a draft, name its version in a submission.
    """
    known = template_in(name)
    if len(body) > CONTENT_LIMIT_BYTES:
        raise InvalidRequest((Fault("", f"{len(body)} bytes, at most {CONTENT_LIMIT_BYTES}"),), _E.TOO_LARGE)
    content = decode(_content, body)
    faults = await asyncio.to_thread(_faults, content)
    if faults:
        raise InvalidRequest(tuple(faults))
    await record(request, Act.TEMPLATE_WRITTEN, [known])
    number = await templates_of(request).put(request.user.app, known, content, api_of(request).clock.now())
    return answer(200, SavedDraft(known, number))


@post(
    "/v1/templates/{name:str}/publish",
    tags=["Templates"],
    summary="Publish a version",
    operation_id="publishTemplate",
    status_code=200,
    opt=speaks({200: TemplateSummary}, ADMINISTERS, body=Publishing, example={}, codes=(_E.NOT_FOUND, *WRITE_CODES)),
)
async def publish(request: Call, name: PathTemplate, body: RawBody) -> Response[bytes]:
    """Have submissions say this version from now on. What was accepted before says the version of then."""
    asked = decode(_publishing, body)
    found = await _found(request, template_in(name))
    number = asked.version or found.draft
    if number is None:
        raise NotFound("the template has no draft")
    await record(request, Act.TEMPLATE_PUBLISHED, [f"{found.name} {number}"])
    if not await templates_of(request).publish(request.user.app, found.name, number, api_of(request).clock.now()):
        raise NotFound("the template has no such version")
    return answer(200, summary(await _found(request, found.name)))


@get(
    "/v1/templates",
    tags=["Templates"],
    summary="List templates",
    operation_id="listTemplates",
    opt=speaks({200: TemplatePage}, READS, codes=(_E.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List templates by name, retired ones too."""
    found = await templates_of(request).list(request.user.app, cursors.name(cursor), limit)
    following = cursors.of_name([each.name for each in found], limit)
    return answer(200, TemplatePage(tuple(map(summary, found)), following))


@get(
    "/v1/templates/{name:str}",
    tags=["Templates"],
    summary="Read a version",
    operation_id="getTemplate",
    opt=speaks({200: TemplateView}, READS, codes=(_E.NOT_FOUND,)),
)
async def show(request: Call, name: PathTemplate, version: VersionGiven = None) -> Response[bytes]:
    """Return one version with its content."""
    found = await _found(request, template_in(name))
    number = version or found.published or found.draft or 0
    known = await templates_of(request).of(request.user.app, [(found.name, number)])
    if (found.name, number) not in known:
        raise NotFound("the template has no such version")
    content = known[found.name, number].content
    return answer(200, TemplateView(found.name, number, state_of(found, number), content))


@get(
    "/v1/templates/{name:str}/versions",
    tags=["Templates"],
    summary="List a template's versions",
    operation_id="listTemplateVersions",
    opt=speaks({200: VersionList}, READS, codes=(_E.NOT_FOUND,)),
)
async def versions(request: Call, name: PathTemplate) -> Response[bytes]:
    """List what was published, and the draft. Drafts that were replaced are gone."""
    found = await _found(request, template_in(name))
    known = await templates_of(request).versions(request.user.app, found.name)
    return answer(200, VersionList(tuple(map(version_view, known))))


@delete(
    "/v1/templates/{name:str}",
    tags=["Templates"],
    summary="Retire a template",
    operation_id="retireTemplate",
    status_code=204,
    opt=speaks({204: None}, ADMINISTERS, codes=(_E.NOT_FOUND, *WRITE_CODES)),
)
async def retire(request: Call, name: PathTemplate) -> None:
    """Refuse submissions that name it, until a version is published again. What was accepted before is still sent."""
    known = template_in(name)
    await record(request, Act.TEMPLATE_RETIRED, [known])
    if not await templates_of(request).retire(request.user.app, known, api_of(request).clock.now()):
        raise NotFound("no such template")


@post(
    "/v1/templates/{name:str}/preview",
    tags=["Templates"],
    summary="Preview a version",
    operation_id="previewTemplate",
    status_code=200,
    opt=speaks(
        {200: PreviewView},
        READS,
        body=PreviewRequest,
        example={"variables": {"name": "Ann"}, "locale": "pt-BR"},
        codes=(_E.NOT_FOUND, _E.MISSING_VARIABLE),
    ),
)
async def preview(request: Call, name: PathTemplate, body: RawBody) -> Response[bytes]:
    """Show what each platform would be sent, with its size in bytes or segments. Nothing is sent."""
    asked = decode(_preview, body)
    found = await _found(request, template_in(name))
    number = asked.version or found.draft or found.published or 0
    known = await templates_of(request).of(request.user.app, [(found.name, number)])
    if (found.name, number) not in known:
        raise NotFound("the template has no such version")
    if faults := zone_faults(asked.time_zone):
        raise InvalidRequest(tuple(faults))
    version = known[found.name, number]
    values = examples(version.content, asked.variables)
    check(version.content.variables, values, is_whole=True)
    use = TemplateUse(found.name, number, values, asked.locale)
    profile = Profile(time_zone=asked.time_zone)
    items = shown(ground_of(request, FEATURE), api_of(request).explain, request.user.app, version, use, profile)
    return answer(200, PreviewView(found.name, number, tuple(map(preview_item, items))))


def template_in(path_part: str) -> str:
    """Read the template a path names; InvalidRequest where it can be no name."""
    return text_in(path_part, "name", TemplateName)


def templates_of(request: Call) -> Templates:
    """Return the store of templates."""
    templates: Templates = ground_of(request, FEATURE).store.templates
    return templates


async def _found(request: Call, name: str) -> TemplateRecord:
    found = await templates_of(request).show(request.user.app, name)
    if found is None:
        raise NotFound("no such template")
    return found


def _faults(content: TemplateContent) -> list[Fault]:
    try:
        from waypost.features.templates.checking import content_faults  # noqa: PLC0415 - an extra, and heavy
    except ModuleNotFoundError:
        return [Fault("", f"the server has no templates installed: {how_to_install('templates')}")]
    return content_faults(content)


ROUTES = [put_template, publish, listed, show, versions, retire, preview]
