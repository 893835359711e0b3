"""Redis: what several processes and machines share beside the store, and a broker; never the only copy of work."""
