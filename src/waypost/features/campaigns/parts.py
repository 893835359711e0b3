"""The parts that campaigns add to a worker."""

from __future__ import annotations

from waypost.features.campaigns.holdout import RULE
from waypost.features.parts import Parts

PARTS = Parts(rules=(RULE,))
