"""Issuers of tokens: what would let the wrong ones in is refused before anything starts, by the path of its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from waypost.adapters.jwt.settings import Algorithm
from waypost.bootstrap.registry import load
from waypost.domain.errors import ConfigurationError
from waypost.domain.scope import Scope

SECRET = "0123456789abcdef" * 2
SHARED = {
    "issuer": "https://a",
    "audience": "waypost",
    "algorithms": ["HS256"],
    "secret": "${LONG}",
    "scopes": ["read"],
}
PUBLIC = {
    "issuer": "https://a",
    "audience": "waypost",
    "algorithms": ["RS256", "ES256"],
    "jwks_url": "https://a/keys",
    "scopes": ["read"],
}


def loaded(folder: Path, issuers: dict[str, Any], others: dict[str, Any] | None = None) -> Any:
    """The issuers of the app demo as they are read, with those of another app beside them."""
    file = folder / "waypost.yaml"
    file.write_text(yaml.safe_dump({"apps": {"demo": {"issuers": issuers}, "other": {"issuers": others or {}}}}))
    return next(iter(load(file, {"LONG": SECRET, "SHORT": SECRET[1:]}).apps.values())).issuers


def test_an_issuer_is_read(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"a": SHARED, "b": PUBLIC | {"audience": "b", "jwks_url": "http://127.0.0.1:1/keys"}})
    assert found["a"].algorithms == (Algorithm.HS256,)
    assert found["a"].scopes == (Scope.READ,)
    assert not found["b"].users


@pytest.mark.parametrize("name", ["cli", "dashboard", "source", "user", "waypost"])
def test_no_issuer_has_a_name_that_on_record_is_somebody_elses(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"issuers\.{name}: choose another name: cli, dashboard, source,"):
        loaded(tmp_path, {name: SHARED})


def test_a_key_set_file_is_beside_the_configuration(tmp_path: Path) -> None:
    issuer = {name: value for name, value in PUBLIC.items() if name != "jwks_url"} | {"jwks_file": "keys.json"}
    assert loaded(tmp_path, {"a": issuer})["a"].jwks_file == str(tmp_path / "keys.json")


@pytest.mark.parametrize(
    ("issuer", "key"),
    [
        (SHARED | {"algorithms": ["none"]}, "algorithms[0]"),
        (SHARED | {"algorithms": []}, "algorithms"),
        (SHARED | {"algorithms": ["RS256"]}, "algorithms"),
        (SHARED | {"algorithms": ["HS256", "RS256"]}, "algorithms"),
        (PUBLIC | {"algorithms": ["HS256"]}, "algorithms"),
        (PUBLIC | {"algorithms": ["RS256", "HS256"]}, "algorithms"),
        (SHARED | {"jwks_url": "https://a/keys"}, "secret"),
        (SHARED | {"secret": None}, "secret"),
        (SHARED | {"secret": "${SHORT}"}, "secret"),
        (SHARED | {"algorithms": ["HS256", "HS512"]}, "secret"),
        (PUBLIC | {"jwks_url": "http://a/keys"}, "jwks_url"),
        (PUBLIC | {"jwks_url": "http://127.0.0.1.evil.example/keys"}, "jwks_url"),
        (PUBLIC | {"jwks_url": "http://127.0.0.1@evil.example/keys"}, "jwks_url"),
        (PUBLIC | {"jwks_url": "https://user:password@a/keys"}, "jwks_url"),
        (PUBLIC | {"jwks_url": "file:///keys"}, "jwks_url"),
        (PUBLIC | {"jwks_url": "https:///keys"}, "jwks_url"),
        (PUBLIC | {"jwks_url": "https://a:b/keys"}, "jwks_url"),
        (PUBLIC | {"scopes": []}, "scopes"),
        (PUBLIC | {"scopes": [], "scope_claim": "scope"}, "scopes"),
        (PUBLIC | {"scopes": ["root"]}, "scopes[0]"),
        (PUBLIC | {"users": True, "scopes": ["read", "send:any-user"]}, "scopes"),
        (PUBLIC | {"users": True, "scopes": ["admin"]}, "scopes"),
        (PUBLIC | {"users": True, "scope_claim": "scope", "claimed_scopes": ["send:any-user"]}, "claimed_scopes"),
        (PUBLIC | {"users": True, "scope_claim": "scope", "claimed_scopes": ["send", "admin"]}, "claimed_scopes"),
        (PUBLIC | {"audience": ""}, "audience"),
        (PUBLIC | {"issuer": None}, "issuer"),
        (PUBLIC | {"leeway_s": 301}, "leeway_s"),
        (PUBLIC | {"jwks_refresh_s": 1}, "jwks_refresh_s"),
    ],
)
def test_what_would_let_the_wrong_ones_in_is_refused(tmp_path: Path, issuer: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        loaded(tmp_path, {"a": issuer})
    assert wrong.value.path == f"apps.demo.issuers.a.{key}"
    assert SECRET[1:] not in str(wrong.value)


def test_end_users_may_have_every_scope_that_reaches_no_further_than_themselves(tmp_path: Path) -> None:
    theirs = {"users": True, "scopes": ["read", "devices"], "scope_claim": "scope", "claimed_scopes": ["send"]}
    assert loaded(tmp_path, {"a": PUBLIC | theirs})["a"].users


def test_two_issuers_that_no_token_could_tell_apart_are_refused(tmp_path: Path) -> None:
    """Else one app's tokens would be as good in another."""
    with pytest.raises(ConfigurationError) as wrong:
        loaded(tmp_path, {"a": SHARED}, {"a": PUBLIC})
    assert wrong.value.path == "apps.other.issuers.a.audience"


def test_the_name_of_an_issuer_holds_no_colon(tmp_path: Path) -> None:
    """It is the first part of its callers' names, up to the colon."""
    with pytest.raises(ConfigurationError) as wrong:
        loaded(tmp_path, {"a:b": SHARED})
    assert wrong.value.path == "apps.demo.issuers.a:b"
