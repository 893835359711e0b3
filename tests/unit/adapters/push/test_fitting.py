"""What is shortened to fit, in which order, and where a text may be cut."""

from __future__ import annotations

import msgspec
import regex
from hypothesis import given
from hypothesis import strategies as st

from waypost.channels.push.fitting import ELLIPSIS, fitted
from waypost.domain.content import Content

FAMILY = "👨‍👩‍👧‍👦"
ACCENTED = "e\u0301"
FLAG = "🇩🇪"


def size_of(content: Content) -> int:
    """As a provider that counts the bytes of its JSON."""
    return len(msgspec.json.encode(content))


def test_what_fits_is_left_alone() -> None:
    content = Content(title="Title", body="Body")
    assert fitted(content, size_of, size_of(content)) is content


def test_the_body_is_shortened_as_little_as_possible_and_nothing_else() -> None:
    content = Content(title="Title", subtitle="Subtitle", body="x" * 500, data={"k": "y" * 100})
    limit = size_of(content) - 100
    got = fitted(content, size_of, limit)
    assert got is not None
    assert size_of(got) == limit
    assert got == msgspec.structs.replace(content, body="x" * (500 - 100 - len(ELLIPSIS.encode())) + ELLIPSIS)


def test_then_the_subtitle_then_the_title_and_never_the_data() -> None:
    content = Content(title="t" * 100, subtitle="s" * 100, body="b" * 100, data={"k": "d" * 100})
    without_body = fitted(content, size_of, size_of(content) - 150)
    assert without_body is not None
    assert without_body.body == ELLIPSIS
    assert without_body.subtitle is not None and without_body.subtitle.startswith("sss")
    assert without_body.title == content.title
    without_both = fitted(content, size_of, size_of(content) - 250)
    assert without_both is not None
    assert (without_both.body, without_both.subtitle) == (ELLIPSIS, ELLIPSIS)
    assert without_both.title is not None and without_both.title.startswith("ttt")
    assert without_both.data == content.data
    assert fitted(content, size_of, 100) is None


def test_a_content_without_text_cannot_be_made_to_fit() -> None:
    assert fitted(Content(data={"k": "d" * 100}), size_of, 50) is None


def test_a_text_shorter_than_the_ellipsis_is_not_made_longer() -> None:
    content = Content(title="t" * 100, body="b")
    got = fitted(content, size_of, size_of(content) - 50)
    assert got is not None
    assert got.body == "b"


def test_no_character_is_cut_in_two() -> None:
    for character in (FAMILY, ACCENTED, FLAG, "한", "ก็"):
        content = Content(body=character * 40)
        for missing in range(1, 60):
            got = fitted(content, size_of, size_of(content) - missing)
            assert got is not None and got.body is not None
            kept = got.body.removesuffix(ELLIPSIS)
            assert kept == character * (len(kept) // len(character))


@given(
    st.text(max_size=80),
    st.text(min_size=1, max_size=80),
    st.integers(0, 400),
)
def test_whatever_the_text_the_result_fits_and_begins_as_the_text_does(title: str, body: str, limit: int) -> None:
    content = Content(title=title, body=body)
    got = fitted(content, size_of, limit)
    if got is None:
        assert size_of(content) > limit
        return
    assert size_of(got) <= limit
    for before, after in ((title, got.title), (body, got.body)):
        assert after is not None
        if after != before:
            kept = after.removesuffix(ELLIPSIS)
            assert before.startswith(kept)
            boundaries = {0} | {match.end() for match in regex.finditer(r"\X", before)}
            trailing = before[len(kept) :]
            assert len(kept) in boundaries or trailing[:1].isspace()
