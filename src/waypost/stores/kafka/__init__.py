"""Kafka: the log that is the truth of the ``log`` stack."""
