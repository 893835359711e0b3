"""Named events and metrics; sinks are injected."""
