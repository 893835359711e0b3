"""OpenTelemetry: spans, exported by OTLP over HTTP."""
