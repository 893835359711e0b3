"""The verification that what was meant arrived: nothing missing, nothing twice, nothing unexpected."""

from typing import Any

import msgspec

from waypost.lab.push_services import subscription_id
from waypost.lab.records import Records


class Expected(msgspec.Struct, frozen=True):
    """A notification and the devices it was for; a Web Push device by endpoint or subscription id."""

    notification_id: str
    tokens: list[str]


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The notifications a run should have brought. With `at_most_once` given, copies count against these ids alone."""

    expected: list[Expected]
    at_most_once: list[str] | None = None


def verify(expectation: Expectation, records: Records) -> dict[str, Any]:
    """Compare. `ok` asks for nothing missing, nothing unexpected, and no forbidden copies.

    A notification that is only in `at_most_once` may have arrived or not.
    """
    expected = {
        item.notification_id: {subscription_id(t) if t.startswith("http") else t for t in item.tokens}
        for item in expectation.expected
    }
    once = None if expectation.at_most_once is None else set(expectation.at_most_once)
    missing = [
        {"notification_id": wanted, "token": token}
        for wanted, tokens in expected.items()
        for token in sorted(tokens - records.copies.get(wanted, {}).keys())
    ]
    duplicates, unexpected = [], []
    for found, copies in records.copies.items():
        wanted_tokens = expected.get(found)
        for token, count in copies.items():
            if count > 1:
                duplicates.append({"notification_id": found, "token": token, "count": count})
            if token not in wanted_tokens if wanted_tokens is not None else found not in (once or ()):
                unexpected.append({"notification_id": found, "token": token})
    forbidden = [copy for copy in duplicates if once is None or copy["notification_id"] in once]
    return {
        "ok": not missing and not unexpected and not forbidden and not records.evicted,
        "missing": missing,
        "duplicates": duplicates,
        "unexpected": unexpected,
        "forbidden_duplicates": len(forbidden),
        "evicted": records.evicted,
    }
