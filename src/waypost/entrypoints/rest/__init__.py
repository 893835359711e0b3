"""The REST API: Litestar for most routes, a plain ASGI route for intake, OpenAPI 3.1 for both."""
