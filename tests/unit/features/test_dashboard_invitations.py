"""Links and sessions of a dashboard without a login: good until they end, for what they are, and with one key."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from waypost.domain.time import Instant, later
from waypost.features.dashboard.invitations import LASTS_MS, Invitations, NoKey

NOW = Instant(1_800_000_000_000)


def test_a_link_and_a_session_are_good_for_their_time_in_every_process(tmp_path: Path) -> None:
    made, elsewhere = Invitations(tmp_path), Invitations(tmp_path)
    made.prepare()
    link, session = made.link(NOW), elsewhere.session(NOW)
    assert elsewhere.is_link(link, NOW) and made.is_session(session, later(NOW, LASTS_MS - 1))
    assert not elsewhere.is_link(link, later(NOW, LASTS_MS)) and not made.is_session(session, later(NOW, LASTS_MS))
    assert not made.is_session(link, NOW) and not made.is_link(session, NOW), "neither is the other"
    assert [path.name for path in tmp_path.iterdir()] == ["dashboard.key"]
    assert stat.S_IMODE((tmp_path / "dashboard.key").stat().st_mode) == 0o600
    assert len((tmp_path / "dashboard.key").read_bytes()) == 32


def test_what_was_not_made_with_the_key_lets_nobody_in(tmp_path: Path) -> None:
    link = _begun(tmp_path).link(NOW)
    ends, _, seal = link.partition(".")
    there, other = Invitations(tmp_path), tmp_path / "other"
    other.mkdir()
    forged = (
        "", ".", ends, f"{ends}.", f"{int(ends) + 1}.{seal}", f"{ends}.{seal[:-1]}", f"{link}=", f" {link}",
        f"0{link}", f"-{link}", f"{'9' * 13}.{seal}", f"{'9' * 5_000}.{seal}", f"{ends}.ä", f"²{link}",
        _begun(other).link(NOW),
    )  # fmt: skip
    assert [said for said in forged if there.is_link(said, NOW)] == []
    assert there.is_link(link, NOW)


def test_a_new_key_ends_all_from_before_and_without_one_nobody_is_let_in(tmp_path: Path) -> None:
    invitations = Invitations(tmp_path)
    assert not invitations.is_link(f"{NOW // 1_000 + 60}.", NOW)
    with pytest.raises(NoKey, match=r"`waypost serve` makes it"):
        invitations.link(NOW)
    invitations.prepare()
    link, session = invitations.link(NOW), invitations.session(NOW)
    invitations.prepare()
    assert invitations.is_link(link, NOW), "a restart ends none"
    Invitations(tmp_path).renew()
    assert not invitations.is_link(link, NOW) and not invitations.is_session(session, NOW)
    assert invitations.is_link(invitations.link(NOW), NOW)


@pytest.mark.parametrize("content", [b"", b"short"])
def test_something_else_in_the_place_of_the_key_signs_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "dashboard.key").write_bytes(content)
    with pytest.raises(NoKey):
        Invitations(tmp_path).link(NOW)
    assert not Invitations(tmp_path).is_link(f"{NOW // 1_000 + 60}.", NOW)
    assert _begun(tmp_path).is_link(Invitations(tmp_path).link(NOW), NOW)


def _begun(folder: Path) -> Invitations:
    invitations = Invitations(folder)
    invitations.prepare()
    return invitations
