"""The registry of devices on Cassandra."""
