"""Apple Push Notification service, its provider API over HTTP/2."""
