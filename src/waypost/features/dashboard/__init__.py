"""The dashboard: pages on which people see what happens and do what an operator does, under ``/dashboard``."""

from waypost.features.dashboard.settings import DashboardSettings
from waypost.features.feature import Feature

DASHBOARD = Feature(
    name="dashboard",
    docs="People see in a browser what happens, look for a notification, and retry what failed.",
    parts="waypost.features.dashboard.parts:PARTS",
    settings=DashboardSettings,
    commands={"accounts": "waypost.cli.accounts:accounts", "dashboard": "waypost.cli.dashboard:dashboard"},
)
