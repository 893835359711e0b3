"""Web Push: RFC 8030, encrypted by RFC 8291, signed by RFC 8292."""
