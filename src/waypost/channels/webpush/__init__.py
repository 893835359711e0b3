"""Web Push: RFC 8030 over HTTP/2, with RFC 8188, 8291 and 8292."""
