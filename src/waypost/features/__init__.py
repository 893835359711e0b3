"""Features: each folder is one, mounted by the list in ``bootstrap/features.py``."""
