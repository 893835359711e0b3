"""The ports' implementations, one folder a technology."""
