"""Validating simulators of the push services with scriptable faults."""
