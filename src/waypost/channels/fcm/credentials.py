"""The service account, and the assertions it signs.

Sources: RFC 7523; developers.google.com, "Using OAuth 2.0 for server to server applications".
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec import Struct

from waypost.channels.fcm.settings import FcmSettings
from waypost.channels.push.signing import signed
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
_LIFETIME_S = HOUR_MS // SECOND_MS


class _KeyFile(Struct):
    project_id: str
    private_key: str
    client_email: str
    private_key_id: str = ""
    token_uri: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address


class ServiceAccount:
    """The account that sends for a project, and its key."""

    def __init__(self, file: _KeyFile, key: rsa.RSAPrivateKey) -> None:
        self.project_id = file.project_id
        self.token_uri = file.token_uri
        self._email = file.client_email
        self._key_id = file.private_key_id
        self._key = key

    def assertion(self, now: Instant) -> str:
        """Sign a request for an access token, good for an hour from *now*."""
        issued_at = now // SECOND_MS
        header = {"alg": "RS256", "typ": "JWT"} | ({"kid": self._key_id} if self._key_id else {})
        claims: dict[str, str | int] = {
            "iss": self._email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": issued_at,
            "exp": issued_at + _LIFETIME_S,
        }
        return signed(header, claims, lambda text: self._key.sign(text, padding.PKCS1v15(), hashes.SHA256()))


def read_service_account(section: str, settings: FcmSettings) -> ServiceAccount:
    """Read the account that *section* names; ConfigurationError names it."""
    path = f"{section}.service_account_file"
    try:
        file = msgspec.json.decode(Path(settings.service_account_file).read_bytes(), type=_KeyFile)
    except OSError as error:
        raise ConfigurationError(path, f"cannot read the service account: {error.strerror or 'unreadable'}") from None
    except msgspec.ValidationError as error:
        raise ConfigurationError(path, f"is not a service account key: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ConfigurationError(path, "is not JSON") from None
    try:
        # Whether its factors are prime is not asked, which takes 0.04 s of CPU: damage is found below.
        key = load_pem_private_key(file.private_key.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(path, "its private_key is not an unencrypted private key in PEM form") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ConfigurationError(path, "its private_key must be an RSA key")
    if not _fits_together(key.private_numbers()):
        raise ConfigurationError(path, "its private_key is damaged: what it signs cannot be verified")
    if not file.token_uri.startswith("https://"):
        raise ConfigurationError(path, "its token_uri must be https")
    return ServiceAccount(file, key)


def _fits_together(key: rsa.RSAPrivateNumbers) -> bool:
    """Tell whether the numbers of *key* are those of one key (RFC 8017, section 3.2), without signing for each app."""
    p, q, d, public = key.p, key.q, key.d, key.public_numbers
    return (
        min(p, q) > 1
        and p * q == public.n
        and (public.e * d - 1) % (p - 1) == (public.e * d - 1) % (q - 1) == 0
        and (key.dmp1, key.dmq1) == (d % (p - 1), d % (q - 1))
        and key.iqmp * q % p == 1
    )
