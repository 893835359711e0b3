"""Files that deploy Waypost, rendered and judged by the tools that read them: `make deploy-check`."""
