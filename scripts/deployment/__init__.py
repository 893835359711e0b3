"""What deploys Waypost, rendered and judged by the tools that read it: `make deploy-check`."""
