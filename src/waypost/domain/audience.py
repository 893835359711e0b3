"""An audience: everybody who listens at a provider, told by one message."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from waypost.domain.channel import Channel
from waypost.domain.ids import token_hash

LONGEST_LABEL = 128


class Audience(Struct, frozen=True):
    """An audience at a provider, which distributes one message to all of its members (a topic, a broadcast channel)."""

    channel: Channel
    kind: str
    """The kind in the words of the channel's plug-in, such as ``topic``."""
    name: str

    @property
    def token(self) -> str:
        """The provider's name of the audience, in place of a device's token."""
        return self.name

    @property
    def token_hash(self) -> bytes:
        """The hash of its name, as a device's token has one."""
        return token_hash(self.name)

    @property
    def label(self) -> str:
        """The name in place of a user and a device: in histories, in receipts, and for the shard.

        A URL is a secret, so that its hash stands for it.
        """
        label = f"{self.channel}:{self.kind}:{self.name}"
        if len(label) <= LONGEST_LABEL and "://" not in self.name:
            return label
        return f"{self.channel}:{self.kind}:{hashlib.sha256(self.name.encode()).hexdigest()}"
