"""The feed in the app: what a user finds there, whatever devices there are."""
