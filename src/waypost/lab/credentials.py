"""The files a sender needs to talk to the lab, made once and kept: CA, server certificate, provider keys."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from waypost.lab import client_certificates

CA, SERVER = "ca.pem", "server.pem"
APNS_CERTIFICATE = "apns-client.pem"
APNS_KEY, SERVICE_ACCOUNT, VAPID_KEY = "AuthKey.p8", "fcm.json", "vapid.pem"
DKIM_KEY = "dkim.pem"
_VALID_DAYS = 3650

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Credentials(msgspec.Struct, frozen=True):
    """The credentials that the lab's gateways accept."""

    apns_key: ec.EllipticCurvePublicKey
    service_account_key: rsa.RSAPublicKey
    service_account_email: str


def pem(key: PrivateKey) -> bytes:
    """Write a private key as unencrypted PKCS#8 PEM, the form of Apple's .p8 files."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_missing(directory: Path, project_id: str, topics: tuple[str, ...] = ("com.example.demo",)) -> Credentials:
    """Make what *directory* lacks and read the rest; *topics* are the client certificate's."""
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / CA).exists() or not (directory / SERVER).exists():
        _write_certificates(directory)
    for name in (APNS_KEY, VAPID_KEY):
        if not (directory / name).exists():
            _write_secret(directory / name, pem(ec.generate_private_key(ec.SECP256R1())))
    if not (directory / DKIM_KEY).exists():
        _write_secret(directory / DKIM_KEY, pem(rsa.generate_private_key(65537, 2048)))
    client_certificates.write_authority(directory)
    if not (directory / APNS_CERTIFICATE).exists():
        both = ("production", "sandbox")
        named = (*topics, *(f"{topic}.voip" for topic in topics))
        _, certificate = client_certificates.issue(directory, named, both, days=_VALID_DAYS)
        _write_secret(directory / APNS_CERTIFICATE, certificate)
    account = write_service_account(directory, project_id, None)
    apns_key = serialization.load_pem_private_key((directory / APNS_KEY).read_bytes(), None)
    account_key = serialization.load_pem_private_key(
        account["private_key"].encode(),
        None,
        unsafe_skip_rsa_key_validation=True,  # our own key; the check takes 50 ms
    )
    if not isinstance(apns_key, ec.EllipticCurvePrivateKey) or not isinstance(account_key, rsa.RSAPrivateKey):
        raise ValueError(f"{APNS_KEY} must hold an EC key and {SERVICE_ACCOUNT} an RSA key")
    return Credentials(apns_key.public_key(), account_key.public_key(), account["client_email"])


def tls_context(directory: Path, alpn: list[str], *, senders_ca: Path | None = None) -> ssl.SSLContext:
    """Serve TLS 1.2 and later with the lab's certificate, offering *alpn*; a sender may show one of *senders_ca*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(directory / SERVER)
    context.set_alpn_protocols(alpn)
    if senders_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(senders_ca)
    return context


def write_service_account(directory: Path, project_id: str, token_uri: str | None) -> dict[str, str]:
    """Read or make `fcm.json`; rewrite it when the lab's token endpoint (None: not yet known) has moved."""
    path = directory / SERVICE_ACCOUNT
    account: dict[str, str] = msgspec.json.decode(path.read_bytes()) if path.exists() else {}
    if account.get("project_id") == project_id and token_uri in (None, account["token_uri"]):
        return account
    key = account.get("private_key") or pem(rsa.generate_private_key(65537, 2048)).decode()
    email = f"waypost-lab@{project_id}.iam.gserviceaccount.com"
    account = {
        "type": "service_account",
        "project_id": project_id,
        "private_key_id": "0123456789abcdef0123456789abcdef01234567",
        "private_key": key,
        "client_email": email,
        "client_id": "100000000000000000001",
        "token_uri": token_uri or "",
    }
    _write_secret(path, msgspec.json.format(msgspec.json.encode(account), indent=2))
    return account


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _write_certificates(directory: Path) -> None:
    """Make a CA and a server certificate for 127.0.0.1, ::1 and localhost; the CA's key is not kept."""
    now = dt.datetime.now(dt.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Waypost lab CA")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    alternatives: list[x509.GeneralName] = [x509.DNSName("localhost")]
    alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")]
    ca_certificate = (
        _certificate(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    certificate = (
        _certificate(name, ca_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    (directory / CA).write_bytes(ca_certificate.public_bytes(serialization.Encoding.PEM))
    _write_secret(directory / SERVER, pem(key) + certificate.public_bytes(serialization.Encoding.PEM))


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_VALID_DAYS))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
