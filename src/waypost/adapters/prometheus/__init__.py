"""Metrics for Prometheus, summed over the workers of a machine."""
