"""What Waypost costs, measured; every figure is CPU per operation or a ratio taken in the same run."""
