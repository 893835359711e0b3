"""Real PostgreSQL, Redis, Kafka and Cassandra on the loopback, for tests, benchmarks and trying things out.

Standard library alone: the servers start while the environment is still being installed.
"""
