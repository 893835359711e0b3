"""Webhooks: messages to URLs, signed as Standard Webhooks has it, or written as Slack, Teams and Discord read them."""
