"""Connections that say nothing, or little: `python crowd.py PORT COUNT HEX`, in a process of its own.

Opens COUNT of them and sends each the bytes in HEX. Prints `open` once all are, and `closed N` when the other side has
closed all N; ends early with its standard input.
"""

import resource
import select
import socket
import sys


def main() -> None:
    """See the module."""
    port, count, said = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held: dict[int, socket.socket] = {}
    watch = select.epoll()
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port))
        if said:
            one.sendall(said)
        one.setblocking(False)
        held[one.fileno()] = one
        watch.register(one, select.EPOLLIN)
    print("open", flush=True)
    watch.register(sys.stdin, select.EPOLLIN)
    while held:
        for number, _ in watch.poll():
            if number == sys.stdin.fileno():
                return
            try:
                is_over = not held[number].recv(65_536)
            except ConnectionError:
                is_over = True
            if is_over:
                watch.unregister(number)
                held.pop(number).close()
    print(f"closed {count}", flush=True)


main()
