"""Channels: how each provider is spoken to. Each folder is a sender; what several share is in `push`."""
