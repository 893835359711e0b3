"""How the world calls in."""
