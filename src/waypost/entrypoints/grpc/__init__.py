"""The gRPC API (`waypost.v1.Notifications`): the same intake, keys, limits and words as the REST API."""
