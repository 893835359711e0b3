"""The example of docs/internals/http2.md, run as it stands."""

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.http2.client import Tls
from tests.adapters.http2.scripted import ordinary, scripted
from waypost.http2 import Answer

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "http2.md"


@pytest.mark.asyncio
async def test_the_example_sends_and_gets_an_answer(tls: Tls) -> None:
    """What a reader copies works."""
    names: dict[str, Any] = {}
    code = PAGE.read_text().split("```python\n")[1].split("```")[0]
    exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    async with scripted(tls.server("h2"), ordinary) as port:
        assert await names["greet"](port, str(tls.cert_file)) == Answer(200, (), b"ok")
