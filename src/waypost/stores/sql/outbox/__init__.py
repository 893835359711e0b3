"""The outbox: entries in the database to be published to topics that others read."""
