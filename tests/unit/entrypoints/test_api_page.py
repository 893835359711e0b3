"""The tour of the API leaves nothing out."""

from __future__ import annotations

import json
import re
from pathlib import Path

from waypost.bootstrap import features
from waypost.entrypoints.rest.app import openapi_document

PAGE = Path(__file__).parents[3] / "docs" / "api.md"


def test_every_operation_is_on_the_page_and_none_that_is_gone() -> None:
    """By method and path; the names of path parameters are free."""
    paths = json.loads(openapi_document((), (), beside=features.routes()))["paths"]
    served = {f"{method.upper()} {path}" for path, operations in paths.items() for method in operations}
    named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)`", PAGE.read_text(encoding="utf-8")))

    def shape(calls: set[str]) -> set[str]:
        return {re.sub(r"\{\w+\}", "{}", call) for call in calls}

    assert shape(named) - {"GET /sdk/{}"} == shape(served), "beside the files of the inbox, which are no operation"
