"""Work whose truth is SQL, carried by a broker."""
