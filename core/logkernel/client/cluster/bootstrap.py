"""Where a client begins: the addresses of `bootstrap.servers`."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from logkernel.errors import ConfigError

DEFAULT_PORT = 9092


def bootstrap_addresses(settings: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(host, port) of `bootstrap.servers`, resolved to full names where client.dns.lookup says so."""
    addresses: list[tuple[str, int]] = []
    for text in settings["bootstrap.servers"]:
        host, colon, port = text.rpartition(":")
        if not colon:
            host, port = ("" if text.isdigit() else text), str(DEFAULT_PORT)  # a port alone names no host
        host = host.strip("[]")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"bootstrap.servers: {text!r} is not of the form HOST:PORT; write e.g. 127.0.0.1:9092")
        addresses.append((host, int(port)))
    if not addresses:
        raise ConfigError("bootstrap.servers is empty; name a broker as HOST:PORT")
    if settings["client.dns.lookup"] == "resolve_canonical_bootstrap_servers_only":
        addresses = [(name, port) for host, port in addresses for name in _canonical(host, port)]
    return list(dict.fromkeys(addresses))


def _canonical(host: str, port: int) -> list[str]:
    """The full names of all addresses of `host`; itself where none is found."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return [host]
    return list(dict.fromkeys(socket.getnameinfo(address, socket.NI_NUMERICSERV)[0] for *_, address in found))
