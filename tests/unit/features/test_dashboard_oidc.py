"""Logging in by OpenID Connect: settings that let in nobody or the wrong ones, ID tokens of others, names, roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.clock import START
from waypost.bootstrap.opening import check_settings
from waypost.bootstrap.registry import load
from waypost.domain.errors import ConfigurationError, WaypostError
from waypost.domain.time import SECOND_MS
from waypost.features.dashboard.oidc import ALGORITHMS, LoginRefused, metadata_of, misfit, name_of, role_of
from waypost.features.dashboard.operators import Role
from waypost.features.dashboard.settings import OidcSettings, RoleClaims

NOW_S = START // SECOND_MS
ISSUER = "https://login.example"
ROLES = RoleClaims(viewer=("all",), campaigner=("news",), operator=("ops",), admin=("root",))
SETTINGS = OidcSettings(issuer=ISSUER, client_id="waypost", client_secret_file="x", roles=ROLES)
GOOD: dict[str, Any] = {"iss": ISSUER, "aud": "waypost", "sub": "1", "iat": NOW_S, "exp": NOW_S + 60, "nonce": "n"}


def checked(folder: Path, **changed: Any) -> None:
    """Read a configuration and check it as ``check-config`` and ``doctor`` do."""
    secret = folder / "secret"
    secret.write_text("s3cret")
    given = {"issuer": ISSUER, "client_id": "waypost", "client_secret_file": str(secret), "roles": {"viewer": ["all"]}}
    rest = {} if changed.pop("public_url", True) is None else {"public_url": "https://push.example"}
    file = folder / "waypost.yaml"
    config = {"apps": {"demo": {}}, "rest": rest, "dashboard": {"oidc": given | changed}}
    file.write_text(yaml.safe_dump(config))
    check_settings(load(file, {}))


def test_settings_that_could_let_in_nobody_or_the_wrong_ones_are_refused(tmp_path: Path) -> None:
    checked(tmp_path)
    checked(tmp_path, issuer="http://127.0.0.1:9000/realm")
    (tmp_path / "empty").write_text("\n")
    for changed, path, why in (
        ({"issuer": "http://login.example"}, "dashboard.oidc.issuer", "is https"),
        ({"issuer": "https://login.example/?x=1"}, "dashboard.oidc.issuer", "without"),
        ({"scopes": ["email"]}, "dashboard.oidc.scopes", "openid"),
        ({"roles": {}}, "dashboard.oidc.roles", "let nobody in"),
        ({"roles": {"god": ["root"]}}, "dashboard.oidc.roles.god", "unknown key"),
        ({"public_url": None}, "rest.public_url", "is required"),
        ({"client_secret_file": str(tmp_path / "no")}, "dashboard.oidc.client_secret_file", "No such file"),
        ({"client_secret_file": str(tmp_path / "empty")}, "dashboard.oidc.client_secret_file", "is empty"),
    ):
        with pytest.raises(ConfigurationError, match=why) as wrong:
            checked(tmp_path, **changed)
        assert wrong.value.path == path


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "https://evil.example"}, "not for this dashboard"),
        ({"aud": "other"}, "not for this dashboard"),
        ({"aud": ["waypost", "other"]}, "not for this dashboard"),
        ({"aud": ["waypost", "other"], "azp": "other"}, "not for this dashboard"),
        ({"azp": "other"}, "not for this dashboard"),
        ({"exp": NOW_S - 30}, "expired"),
        ({"exp": None}, "needs `exp`"),
        ({"iat": NOW_S + 31}, "not valid yet"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"nonce": "m"}, "another login"),
        ({"nonce": None}, "another login"),
        ({"aud": ["waypost", "other"], "azp": "waypost"}, None),
        ({"exp": NOW_S - 29}, None),
    ],
)
def test_an_id_token_is_for_this_login_or_refused(changed: dict[str, Any], why: str | None) -> None:
    found = misfit(GOOD | changed, SETTINGS, "n", START)
    assert found is None if why is None else why in str(found)


def test_a_secret_that_both_sides_know_signs_no_id_token() -> None:
    assert {str(each)[:2] for each in ALGORITHMS} == {"RS", "ES"}


def test_a_name_is_a_mailbox_that_was_confirmed_or_the_next_best() -> None:
    both = {"sub": "1", "email": "ann@example.com", "preferred_username": "ann"}
    assert name_of(both) == "oidc:ann@example.com"
    assert name_of(both | {"email_verified": False}) == "oidc:ann"
    assert name_of(both | {"email": "a\nb", "preferred_username": ""}) == "oidc:1"
    with pytest.raises(LoginRefused):
        name_of({"sub": "1" * 101})


def test_of_several_roles_a_person_has_the_one_that_may_most() -> None:
    for said, role in ((["all", "ops", "x"], Role.OPERATOR), ("root", Role.ADMIN), (["news", "all"], Role.CAMPAIGNER)):
        assert role_of({"groups": said}, SETTINGS) is role
    for nothing in (None, [], "al", "all ops", {"all": 1}, [["root"]]):
        with pytest.raises(WaypostError, match="nothing in your `groups`"):
            role_of({"groups": nothing}, SETTINGS)


def test_a_discovery_document_names_its_issuer_and_safe_addresses() -> None:
    text = (
        f'{{"issuer": "{ISSUER}", "authorization_endpoint": "https://a/auth", "token_endpoint": "https://a/token",'
        ' "jwks_uri": "https://a/keys"}'
    )
    assert metadata_of(text.encode(), ISSUER).jwks_uri == "https://a/keys"
    for wrong in (
        text.replace(ISSUER, "https://evil"),
        text.replace("https://a/token", "http://a/token"),
        "[]",
        "\xff",
    ):
        with pytest.raises(OSError, match=r"another issuer|neither https|no discovery"):
            metadata_of(wrong.encode("latin-1"), ISSUER)
