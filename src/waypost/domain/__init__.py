"""The words of Waypost as frozen data, and its decisions as pure functions over them."""
