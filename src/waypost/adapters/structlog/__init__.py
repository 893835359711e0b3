"""JSON logs through structlog."""
