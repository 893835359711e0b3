"""docs/lab.md names every fault and every request of the admin API, docs/internals/lab-refusals.md every refusal."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from waypost.lab import apns, apns_broadcast, apns_channels, apns_identity, faults, oauth, push_services, webpush

DOCS = Path(__file__).parents[3] / "docs"
DOC = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("lab.md", "internals/lab-refusals.md"))
ADMIN = (Path(__file__).parents[3] / "src" / "waypost" / "lab" / "admin.py").read_text(encoding="utf-8")


APPLE: list[Sequence[apns_identity.IdentityCheck[Any]]] = [
    apns_identity.BY_TOKEN, apns_identity.BY_CERTIFICATE,
    *(table for host in (apns, apns_channels, apns_broadcast) for table in (host.LINE, host.CONTENT)),
]  # fmt: skip


@pytest.mark.parametrize("name", faults.Do.__struct_fields__ + faults.Match.__struct_fields__)
def test_every_fault_is_documented(name: str) -> None:
    assert f"`{name}" in DOC or f"| `{name}: " in DOC


@pytest.mark.parametrize(
    "reason",
    sorted(
        {check.reason for table in APPLE for check in table}
        | {check.reason for check in webpush.CHECKS}
        | {check.error for check in oauth.CHECKS} - {"not_found", "invalid_request"}
    ),
)
def test_every_refusal_is_documented(reason: str) -> None:
    assert f"`{reason}`" in DOC


def test_every_admin_request_is_documented() -> None:
    paths = re.findall(r'web\.\w+\("([^"]+)"', ADMIN)
    assert paths
    assert [path for path in paths if path.replace(":.+", "") not in DOC] == []


def test_every_push_service_is_documented() -> None:
    assert [name for name in push_services.SERVICES if f"`{name}`" not in DOC] == []
