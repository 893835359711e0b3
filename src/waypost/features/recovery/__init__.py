"""Recovery: what nobody moves is found, healed where that is safe, and told to an operator where it is not."""

from waypost.features.feature import Feature
from waypost.features.recovery.settings import RecoverySettings

RECOVERY = Feature(
    name="recovery",
    docs="Notifications that nobody moves are found; what cannot be healed is an alert, retried or resolved by people.",
    parts="waypost.features.recovery.parts:PARTS",
    settings=RecoverySettings,
    commands={"alerts": "waypost.cli.alerts:alerts"},
)
