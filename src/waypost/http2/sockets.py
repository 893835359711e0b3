"""A hard limit on open sockets, also across pools."""


class Sockets:
    """A limit of *most* sockets at once over all pools that share it, whether they take requests, open or end.

    A pool that gets none waits; it asks again when one of its own connections ends, and every second.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.open = 0

    def take(self) -> bool:
        """Count one more socket, if there may be one more."""
        if self.open >= self.most:
            return False
        self.open += 1
        return True

    def give_back(self) -> None:
        """Count one socket less."""
        self.open -= 1
