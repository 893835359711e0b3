"""Waypost gets "tell this user that" to every device the user owns, durably, once, on time, and says what happened."""

__version__ = "0.1.0.dev0"
