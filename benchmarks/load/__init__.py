"""``make load``: the product under the loads that are asked of it, each against the figure that is wanted."""
