"""What the pipeline asks of the world, one Protocol a file."""
