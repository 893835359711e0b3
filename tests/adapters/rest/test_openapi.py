"""The served OpenAPI document is the truth: what it allows is answered as it says, what it forbids is refused."""

from __future__ import annotations

import asyncio
import os
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.adapters.rest.service import Service
from tests.shows import shows

SERVICE = Service()
asyncio.run(SERVICE.add_keys())
load_all_checks()
schema = schemathesis.openapi.from_asgi("/openapi.json", SERVICE.app, timeout=60)
INNER = {f"#/components/schemas/{name}" for name in ("Submission", "BulkSubmission", "BulkMessage")}
HOLDERS = ("Batch", "SubmittedSchedule", "SubmittedSeriesStep", "CampaignSubmission")
TITLE_ALONE = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
}
PLAIN_FIELDS = ("user_id", "device_ids", "title", "data", "scheduled_at", "idempotency_key", "dedup_window")
"""What stays of a submission where it is asked about."""


def _shorten(node: Any) -> None:
    """Let what holds a message hold a title alone: every field of a message is generated where it stands by itself."""
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _shorten(each)
    if isinstance(node, dict) and node.get("$ref") in INNER:
        del node["$ref"]
        node.update(TITLE_ALONE)


for holder in HOLDERS:
    _shorten(schema.raw_schema["components"]["schemas"][holder])
_submission = schema.raw_schema["components"]["schemas"]["Submission"]
PLAIN = _submission | {"properties": {name: _submission["properties"][name] for name in PLAIN_FIELDS}}
for path in ("/v1/explain", "/v1/dedup/forget"):  # the same decoder as of /v1/notifications
    schema.raw_schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"] = PLAIN
_rejection = schema.config.checks.negative_data_rejection
_rejection.expected_statuses = [*_rejection.expected_statuses, "413", "431"]  # what is generated may be too large
OPERATIONS: dict[str, Any] = {}
for found in schema.get_all_operations():
    assert isinstance(found, Ok), f"an operation that cannot be read: {found}"
    OPERATIONS[found.ok().label] = found.ok()
FEEDBACK = FeedbackSources(constants_value_source=make_constants_value_source(schema))
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]


@shows("S3-134")
@pytest.mark.parametrize("operation", OPERATIONS, ids=list(OPERATIONS))
def test_answers_are_as_documented(operation: str) -> None:
    """For generated requests, good and bad: never a 500, always a documented status, type and body.

    The same requests each time, so that what was green stays green; RANDOM=1 looks for others. They are made here and
    not, as by ``schema.parametrize``, as tests are collected: each process of the session would make all of them.
    """
    build_operation_test(
        config=schema.config,
        operation=OPERATIONS[operation],
        test_func=answers_as_documented,
        given_kwargs={},
        feedback=FEEDBACK,
    )()


@settings(max_examples=10, suppress_health_check=list(HealthCheck), derandomize=os.environ.get("RANDOM") != "1")
def answers_as_documented(case: schemathesis.Case) -> None:
    """Make a request and judge its answer."""
    response = case.call(headers={"authorization": f"Bearer {SERVICE.made.text}"})
    case.validate_response(response, checks=[check for check in CHECKS if _applies(check, case, response)])


def _applies(check: object, case: schemathesis.Case, response: schemathesis.Response) -> bool:
    """A batch answers for a wrong item inside a 200; a list of nothing, generated as wrong, never goes on the wire."""
    if check is not negative_data_rejection:
        return True
    sent = parse_qs(urlsplit(str(response.request.url)).query, keep_blank_values=True)
    return not case.path.endswith("/batch") and set(case.query or {}) <= set(sent)


def test_the_examples_of_answers_make_sense_where_they_stand() -> None:
    shown = [
        (status, content["example"])
        for path in schema.raw_schema["paths"].values()
        for operation in path.values()
        for status, answer in operation["responses"].items()
        for content in answer.get("content", {}).values()
        if "example" in content
    ]
    assert all(str(example.get("error", example)["status"]) == status for status, example in shown if status[0] in "45")
    assert {("202", False), ("200", True)} == {
        (status, example["deduplicated"]) for status, example in shown if status[0] == "2"
    }
