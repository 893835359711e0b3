"""An address: where a message goes."""

from __future__ import annotations

from waypost.domain.audience import Audience
from waypost.domain.device import Device

Address = Device | Audience
"""A user's device, or everybody who listens at a provider."""
