"""E-mail: messages to people's mailboxes, handed to an SMTP server."""
