"""A multiplexed HTTP/2 client that knows nothing of notifications."""
