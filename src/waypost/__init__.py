"""Waypost takes "tell this user that" and gets it to every device the user owns, once, on time, and says what happened."""

__version__ = "0.1.0.dev0"
