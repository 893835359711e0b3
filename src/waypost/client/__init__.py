"""The Python client for callers."""
