"""The messages of the gRPC API have everything that the domain says, by the same names."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
import msgspec
import pytest
from google.protobuf import json_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from hypothesis import given, settings
from hypothesis import strategies as st

from waypost.domain.content import ApnsPushType, Kind, Urgency
from waypost.domain.errors import ErrorCode, InvalidRequest
from waypost.domain.notification import Guarantee
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.submission import Submission, SubmittedAction, SubmittedBroadcast, SubmittedTemplate
from waypost.domain.words import Words
from waypost.entrypoints.grpc.refusals import STATUS_OF
from waypost.entrypoints.grpc.submissions import parsed, submission
from waypost.v1 import notifications_pb2 as pb


@pytest.mark.parametrize(
    ("message", "struct"),
    [
        (pb.Submission, Submission),
        (pb.Action, SubmittedAction),
        (pb.Broadcast, SubmittedBroadcast),
        (pb.TemplateChoice, SubmittedTemplate),
    ],
)
def test_a_message_has_every_field(message: type, struct: type[msgspec.Struct]) -> None:
    """A field that is new at one door is missing at the other until it is written there, too."""
    assert {field.name for field in message.DESCRIPTOR.fields} == set(struct.__struct_fields__)  # type: ignore[attr-defined] # generated


@pytest.mark.parametrize(
    ("enum", "prefix", "words"),
    [
        (pb.Kind, "KIND_", Kind),
        (pb.Urgency, "URGENCY_", Urgency),
        (pb.Guarantee, "GUARANTEE_", Guarantee),
        (pb.PushType, "PUSH_TYPE_", ApnsPushType),
        (pb.NotificationStatus, "NOTIFICATION_STATUS_", NotificationStatus),
        (pb.DeliveryStatus, "DELIVERY_STATUS_", DeliveryStatus),
    ],
)
def test_an_enum_has_every_word(enum: EnumTypeWrapper, prefix: str, words: type[Words]) -> None:
    """And one more, for nothing said."""
    names = [value.name for value in enum.DESCRIPTOR.values]
    assert {name.removeprefix(prefix).lower() for name in names} == {*words, "unspecified"}


def test_every_code_has_a_grpc_status() -> None:
    """None of them reads as success, and only what is unforeseen as INTERNAL."""
    assert set(STATUS_OF) == set(ErrorCode)
    assert [code for code, status in STATUS_OF.items() if status is grpc.StatusCode.INTERNAL] == [ErrorCode.INTERNAL]
    assert grpc.StatusCode.OK not in STATUS_OF.values()


def test_all_who_listen_and_push_types_are_read_as_json_has_them() -> None:
    """Nested messages and words become the values that the same JSON would."""
    to = {"channel": "fcm", "kind": "topic", "name": "news"}
    said = {"to": to, "title": "t", "push_type": "liveactivity", "tags": ["orders", "news"]}
    message = json_format.ParseDict({**said, "push_type": "PUSH_TYPE_LIVEACTIVITY"}, pb.Submission())
    assert submission(message) == msgspec.convert(said, Submission)


def test_variants_are_read_as_json_has_them() -> None:
    said = {
        "user_id": "u",
        "variants": [{"name": "a", "title": "A", "weight": 2}, {"name": "b", "body": "B"}],
        "holdout": 5,
    }
    assert submission(json_format.ParseDict(said, pb.Submission())) == msgspec.convert(said, Submission)


def test_a_device_named_by_its_token_is_read_as_json_has_it() -> None:
    keys = {"p256dh": "BF1z", "auth": "k8JV"}
    for device in (
        {"platform": "ios", "token": "ab"},
        {"platform": "web", "token": "https://push.example", "keys": keys},
    ):
        said = {"device": device, "title": "t"}
        assert submission(json_format.ParseDict(said, pb.Submission())) == msgspec.convert(said, Submission)


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_submission_or_invalid(body: bytes) -> None:
    """No message, however formed, is a surprise."""
    try:
        read = submission(parsed(pb.Submission, b"\x0a\x01u\x32\x01t" + body))
    except InvalidRequest:
        return
    assert read == msgspec.json.decode(msgspec.json.encode(read), type=Submission)


def test_the_page_of_errors_has_each_code_under_its_status() -> None:
    """Who calls over gRPC reads there what a status can mean."""
    page = (Path(__file__).parents[3] / "docs" / "errors.md").read_text(encoding="utf-8")
    table = page.partition("| status | codes |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", table, re.MULTILINE)
    told = {code: status for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    assert told == {code.value: status.name for code, status in STATUS_OF.items()}
