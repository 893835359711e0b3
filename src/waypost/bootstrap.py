"""The composition root: the only module that names adapters."""
