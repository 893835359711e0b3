"""Variants in a submission and in a bulk job: what each user is told, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.domain.made import device, notification
from tests.unit.domain.test_routing import DEMO, IOS, routed
from waypost.domain.bulk import BulkJob, notification_for, variables_for
from waypost.domain.bulk_submission import BulkSubmission, draft_job, recipient_of
from waypost.domain.content import Content
from waypost.domain.device import Platform
from waypost.domain.drafting import Draft, draft
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.rules import with_rules
from waypost.domain.settlement import Suppressed
from waypost.domain.submission import Defaults, Submission
from waypost.domain.time import Instant
from waypost.domain.variants import HOLDOUT, Split, Variant, variant_for
from waypost.features.campaigns.holdout import RULE

NOW = Instant(1_800_000_000_000)
ID = NotificationId(NOW.to_bytes(6, "big") + b"\x70\x00\x80" + bytes(7))
SHORT, LONG = {"name": "short", "title": "Sale"}, {"name": "long", "title": "Hi {{name}}", "body": "{{name}}, look!"}
TWO = {"campaign": "spring", "variants": [SHORT, LONG], "body": "Today only."}
SPLIT = Split((Variant("short", title="Sale"), Variant("long", title="Hi {{name}}", body="{{name}}, look!")))
USERS = [UserId(f"user-{n}") for n in range(60)]


def _single(**fields: Any) -> Draft:
    submission = msgspec.convert({"user_id": "ann", "title": "Hello"} | fields, Submission)
    return draft(submission, ID, AppId("demo"), CallerId("shop"), Defaults(), NOW)


def _job(message: dict[str, Any], **fields: Any) -> BulkJob:
    asked = msgspec.convert({"notification": message, "upload": True} | fields, BulkSubmission)
    return draft_job(asked, ID, AppId("demo"), CallerId("shop"), Defaults(), NOW)


def _told(job: BulkJob, user_id: UserId, **own: str) -> Notification:
    return notification_for(job, 0, user_id, variables_for(job, own, user_id))


def test_a_single_one_is_accepted_with_the_words_of_its_users_variant() -> None:
    """What is stored is what is said; the texts beside stand where the variant has none."""
    for user in USERS:
        said = _single(user_id=user, **TWO).notification.content
        expected = ("Sale", "Today only.") if said.variant == "short" else ("Hi {{name}}", "{{name}}, look!")
        assert (said.title, said.body) == expected
        assert (said.campaign, said.variant, said.split) == ("spring", variant_for(SPLIT, "spring", user), None)


def test_a_job_tells_each_recipient_their_variant_with_their_values() -> None:
    """The same variant as in a single one of that campaign."""
    job = _job(TWO)
    assert job.names == ("name",)
    for user in USERS:
        said = _told(job, user, name="Bo").content
        assert said.variant == variant_for(SPLIT, "spring", user)
        assert (said.title, said.body) == (
            ("Sale", "Today only.") if said.variant == "short" else ("Hi Bo", "Bo, look!")
        )


def test_the_registry_is_told_variants_with_the_defaults_filled_in() -> None:
    """A job on the registry has no values for each; its variants are filled in when it is made."""
    job = _job(TWO, upload=False, registry={}, variables={"name": "friend"})
    titles = {_told(job, user).content.title for user in USERS}
    assert (job.names, titles) == ((), {"Sale", "Hi friend"})


def test_a_list_must_have_the_values_that_any_variant_asks_for() -> None:
    """Nobody is left with a gap since they are of another variant."""
    with pytest.raises(InvalidRequest) as refused:
        recipient_of("ann", _job(TWO), "line 3")
    assert [fault.path for fault in refused.value.faults] == ["line 3.name"]


def test_the_holdout_is_suppressed_and_says_so() -> None:
    """Its notification is there, with its devices as targets that nothing is sent to."""
    tablet = device(device_id=DeviceId("t"), platform=Platform("android"))
    told = notification(app=DEMO, content=Content(title="Sale", variant=HOLDOUT))
    targets = routed(told, (IOS, tablet), rules=with_rules([RULE])).targets
    assert [each.settlement for each in targets] == [Suppressed("holdout")] * 2
    told = notification(app=DEMO, content=Content(title="Sale", variant="short"))
    assert routed(told, (IOS,), rules=with_rules([RULE])).targets[0].settlement is None
    assert {_single(user_id=user, holdout=30, **TWO).notification.content.variant for user in USERS} >= {HOLDOUT}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no name to draw by": ({"variants": [SHORT]}, "campaign"),
    "one name twice": ({"campaign": "x", "variants": [SHORT, SHORT]}, "variants"),
    "the name of the holdout": ({"campaign": "x", "variants": [{"name": "holdout"}]}, "variants"),
    "nobody to compare with": ({"campaign": "x", "holdout": 10}, "holdout"),
    "an audience": (
        {"campaign": "x", "variants": [SHORT], "user_id": None, "to": {"channel": "fcm", "kind": "topic", "name": "n"}},
        "variants",
    ),
    "nothing to show in one": ({"campaign": "x", "title": None, "variants": [SHORT, {"name": "b"}]}, "title"),
    "a sound of silence": ({"campaign": "x", "title": None, "kind": "silent", "variants": [SHORT]}, "title"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused(name: str) -> None:
    fields, path = WRONG[name]
    with pytest.raises(InvalidRequest) as refused:
        _single(**fields)
    assert path in [fault.path for fault in refused.value.faults]


def test_half_a_placeholder_in_a_variant_is_refused_by_its_place() -> None:
    message = {"title": "x", "campaign": "x", "variants": [SHORT, {"name": "b", "body": "Hi {{name"}]}
    with pytest.raises(InvalidRequest) as refused:
        _job(message)
    assert [fault.path for fault in refused.value.faults] == ["notification.variants[1].body"]
