"""The Python stub of the gRPC API, generated from ``proto/waypost/v1`` by ``make protos``."""
