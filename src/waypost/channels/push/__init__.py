"""What senders over HTTP/2 have in common: the one folder that other adapters may import; it knows none of them."""
