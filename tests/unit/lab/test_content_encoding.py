"""The published examples of RFC 8188 and RFC 8292, read step by step.

RFC 8188 derives its keys from shared input alone, Web Push (RFC 8291) adds a step before: what is common to both is
the HMAC with the salt and the two expansions. They are tried on our own expansion, and by another library throughout.
"""

from __future__ import annotations

import hmac

import http_ece
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from waypost.channels.push.encryption import expand
from waypost.lab.jose import from_base64url, to_base64url
from waypost.lab.vapid import read_vapid

# section, key, body, key id, record size, content key, nonce
EXAMPLES = [
    (
        "3.1", "yqdlZ-tYemfogSmv7Ws5PQ",
        "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg",
        b"", 4096, "_wniytB-ofscZDh4tbSjHw", "Bcs8gkIRKLI8GeI8",
    ),
    (
        "3.2", "BO3ZVPxUlnLORbVGMpbT1Q",
        "uNCkWiNYzKTnBN9ji3-qWAAAABkCYTHOG8chz_gnvgOqdGYovxyjuqRyJFjEDyoF1Fvkj6hQPdPHI51OEUKEpgz3SsLWIqS_uA",
        b"a1", 25, "u_eEOTjjVWUVrH82pQNwpw", "VqylG1rdt-mJrNgP",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("_", "key", "body", "key_id", "size", "content_key", "nonce"), EXAMPLES)
def test_the_examples_of_rfc_8188_open_with_the_keys_that_we_derive(
    _: str, key: str, body: str, key_id: bytes, size: int, content_key: str, nonce: str
) -> None:
    octets = from_base64url(body)
    salt, records = octets[:16], octets[21 + len(key_id) :]
    assert (int.from_bytes(octets[16:20]), octets[21 : 21 + octets[20]]) == (size, key_id)
    pseudo_random = hmac.digest(salt, from_base64url(key), "sha256")
    derived_key = expand(pseudo_random, b"Content-Encoding: aes128gcm\0")[:16]
    derived_nonce = expand(pseudo_random, b"Content-Encoding: nonce\0")[:12]
    assert (to_base64url(derived_key), to_base64url(derived_nonce)) == (content_key, nonce)
    plaintext = b""
    for n in range(0, len(records), size):
        counted = (int.from_bytes(derived_nonce) ^ n // size).to_bytes(12)
        padded = AESGCM(derived_key).decrypt(counted, records[n : n + size], None).rstrip(b"\0")
        assert padded[-1:] == (b"\x02" if n + size >= len(records) else b"\x01")
        plaintext += padded[:-1]
    assert plaintext == b"I am the walrus"
    assert http_ece.decrypt(octets, key=from_base64url(key), version="aes128gcm") == plaintext


def test_the_example_of_rfc_8292_is_read_with_its_key_and_time() -> None:
    """The lab leaves the clock to the push service: at that time, 1453523768, the example had not expired."""
    header = (
        "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1"
        "MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1"
        "JrErtmysazNjjvW2L9OkSSHzvoD1oA, "
        "k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
    )
    read = read_vapid(header)
    assert read is not None
    assert (read.audience, read.expires_at) == ("https://push.example.net", 1453523768)
    assert read.subject == "mailto:push@example.com"
    assert read_vapid(header.replace("i3CYb7t4", "i3CYb7t5")) is None
