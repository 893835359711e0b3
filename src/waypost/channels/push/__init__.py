"""The parts that senders over HTTP/2 share: the one folder that other adapters may import; it knows none of them."""
