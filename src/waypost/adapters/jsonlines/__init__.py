"""Events as lines of JSON."""
