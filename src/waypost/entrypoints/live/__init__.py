"""The live connections of users: what comes into a feed is seen at once."""
