"""Ports: what the pipeline needs of the world, as Protocols; adapters fulfil them, one contract suite a port."""
