"""The provider lab: APNs, FCM with its token endpoint, and Web Push on loopback, validating and scriptable."""

from waypost.lab.lab import Lab, run_lab
from waypost.lab.settings import LabSettings, LabUrls

__all__ = ["Lab", "LabSettings", "LabUrls", "run_lab"]
