"""Work, views, devices, keys and journal on SQL."""
