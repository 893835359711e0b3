"""What stands in the database to be published to topics that others read."""
