"""Limits that one process counts by itself, or takes ahead of what others count, too."""
