"""The certificates an APNs sender may identify itself with in place of a provider token."""

import datetime as dt
import functools
from collections.abc import Iterator
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT_CA = "client-ca.pem"
_TOPICS = x509.ObjectIdentifier("1.2.840.113635.100.6.3.6")
_ENVIRONMENTS = {
    "sandbox": x509.ObjectIdentifier("1.2.840.113635.100.6.3.1"),
    "production": x509.ObjectIdentifier("1.2.840.113635.100.6.3.2"),
}
"""Apple's extensions: a list of topics, and one marker for each environment the certificate is good for."""
_SEQUENCE, _UTF8 = 0x30, 0x0C


class ClientCertificate(msgspec.Struct, frozen=True):
    """The rights of a certificate's holder."""

    serial: int
    topics: tuple[str, ...]
    """The topics, the bundle id first; then one for each further kind, such as `<bundle id>.voip`."""
    environments: tuple[str, ...]


@functools.lru_cache(maxsize=1000)
def read_certificate(der: bytes) -> ClientCertificate | None:
    """Read a client's certificate; None when Apple's extensions are not in it."""
    certificate = x509.load_der_x509_certificate(der)
    found = {
        extension.oid: extension.value.value
        for extension in certificate.extensions
        if isinstance(extension.value, x509.UnrecognizedExtension)
    }
    if _TOPICS not in found:
        return None
    topics = tuple(value.decode() for tag, value in _parts(next(_parts(found[_TOPICS]))[1]) if tag == _UTF8)
    environments = tuple(name for name, oid in _ENVIRONMENTS.items() if oid in found)
    return ClientCertificate(certificate.serial_number, topics, environments)


def write_authority(directory: Path) -> Path:
    """Make the authority that signs senders' certificates when it is missing; its file holds the key, too."""
    path = directory / CLIENT_CA
    if path.exists():
        return path
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Waypost lab sender CA")])
    authority = (
        _builder(name, name, key.public_key(), days=3650)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.touch(mode=0o600)
    path.write_bytes(_pem(key) + authority.public_bytes(serialization.Encoding.PEM))
    return path


def issue(directory: Path, topics: tuple[str, ...], environments: tuple[str, ...], *, days: float) -> tuple[int, bytes]:
    """Make a certificate for *topics*, good for *days* from now; return its serial, and its key and chain as PEM."""
    authority_pem = (directory / CLIENT_CA).read_bytes()
    authority = x509.load_pem_x509_certificate(authority_pem)
    authority_key = serialization.load_pem_private_key(authority_pem, None)
    if not isinstance(authority_key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{CLIENT_CA} must hold an EC key")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.USER_ID, topics[0]),
            x509.NameAttribute(NameOID.COMMON_NAME, f"Apple Push Services: {topics[0]}"),
        ]
    )
    builder = _builder(subject, authority.subject, key.public_key(), days=days)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    builder = builder.add_extension(x509.UnrecognizedExtension(_TOPICS, _topic_list(topics)), critical=False)
    for name in environments:
        marker = x509.UnrecognizedExtension(_ENVIRONMENTS[name], b"\x05\x00")
        builder = builder.add_extension(marker, critical=False)
    made = builder.sign(authority_key, hashes.SHA256())
    chain = made.public_bytes(serialization.Encoding.PEM) + authority.public_bytes(serialization.Encoding.PEM)
    return made.serial_number, _pem(key) + chain


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: float
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    ends = now + dt.timedelta(days=days)
    begins = min(now, ends) - dt.timedelta(days=1)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(begins).not_valid_after(ends)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _topic_list(topics: tuple[str, ...]) -> bytes:
    """Encode topics in Apple's form: each followed by a list of what it is for."""
    used_for = _part(_SEQUENCE, _part(_UTF8, b"app"))
    return _part(_SEQUENCE, b"".join(_part(_UTF8, topic.encode()) + used_for for topic in topics))


def _part(tag: int, value: bytes) -> bytes:
    """Encode one DER element."""
    if len(value) < 0x80:
        return bytes((tag, len(value))) + value
    return bytes((tag, 0x82)) + len(value).to_bytes(2) + value


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the DER elements that stand one behind the other."""
    at = 0
    while at + 2 <= len(data):
        tag, length, start = data[at], data[at + 1], at + 2
        if length & 0x80:
            octets = length & 0x7F
            length, start = int.from_bytes(data[start : start + octets]), start + octets
        yield tag, data[start : start + length]
        at = start + length
