"""The entry points: how the world calls in."""
