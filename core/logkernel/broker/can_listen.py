"""Whether an address can be listened on, asked before anything is made."""

from __future__ import annotations

import socket

from logkernel.config.listeners import why_cannot_listen
from logkernel.errors import CannotListen


def check_address(host: str, port: int) -> None:
    """Raise `CannotListen` where no address of `host` can be bound now; "" is every address of this machine."""
    problem: OSError | None = None
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(why_cannot_listen(host, port, error)) from None
    for family, kind, protocol, _, where in found:
        try:
            with socket.socket(family, kind, protocol) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(where)
            return
        except OSError as error:
            problem = error
    if problem is not None:
        raise CannotListen(why_cannot_listen(host, port, problem))
