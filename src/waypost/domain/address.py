"""An address: where a message goes."""

from __future__ import annotations

from waypost.domain.device import Device
from waypost.domain.notification import Broadcast

Address = Device | Broadcast
"""A user's device, or everybody who listens at a provider."""
