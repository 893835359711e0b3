"""Stores: databases and logs behind the ports. Each folder is an engine."""
