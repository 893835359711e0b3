"""Firebase Cloud Messaging, its HTTP v1 API."""
