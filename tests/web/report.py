"""The record that Vitest writes of a run."""

from __future__ import annotations

import json
from pathlib import Path


class Report:
    """How the tests of the web client ended, by their titles."""

    def __init__(self, record: Path, said: str) -> None:
        """Read what Vitest wrote; *said* is its output."""
        assert record.exists(), said
        files = json.loads(record.read_text())["testResults"]
        self._said = said
        self.results = {each["title"]: each for file in files for each in file["assertionResults"]}
        self.broken = [file["message"] for file in files if file["status"] != "passed" and not file["assertionResults"]]

    def passed(self, *titles: str) -> None:
        """Fail unless each of these ran and passed."""
        for title in titles:
            found = self.results.get(title)
            assert found is not None, f"no test is called {title!r}"
            assert found["status"] == "passed", "\n".join([title, *found["failureMessages"], self._said[-4000:]])
