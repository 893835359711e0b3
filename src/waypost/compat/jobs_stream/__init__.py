"""The drop-in for the notifications service: its stream is the queue, and the tables of its owner stay as they are."""
