"""JSON Web Tokens of other issuers (RFC 7519), their keys by secret or as a JWK set (RFC 7517)."""
