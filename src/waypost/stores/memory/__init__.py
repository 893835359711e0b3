"""Every store port in one process's memory: the readable reference of their contracts, for tests and simulations."""
