"""Addresses: where a broker listens, and what it tells clients to connect to."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from logkernel.vocabulary import SECURITY_PROTOCOLS

PROTOCOLS = SECURITY_PROTOCOLS
DEFAULT_NAME = "PLAINTEXT"
MAX_PORT = 65_535
_FORM = re.compile(
    r"(?:(?P<name>[A-Za-z][A-Za-z0-9_.-]*)://)?(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\],]*):(?P<port>\d{1,5})"
)
ANY_HOST = ("", "0.0.0.0", "::")

FURTHER = "logkernel.command.listener.names"


def address(host: str, port: int) -> str:
    """As `parse_listeners` reads it: an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def why_cannot_listen(host: str, port: int, error: OSError) -> str:
    """The text of a `CannotListen`, for a command with the option --listen."""
    where = address(host, port)
    if error.errno == errno.EADDRINUSE:
        return (
            f"cannot listen on {where}: another process listens there;"
            " stop it, or take another port by --listen HOST:PORT (port 0 takes a free one)"
        )
    if error.errno == errno.EACCES:
        return f"cannot listen on {where}: ports below 1024 need privileges; take one above by --listen HOST:PORT"
    why = error.strerror or str(error)
    return f"cannot listen on {where}: {why}; name an address of this machine by --listen HOST:PORT"


class Listener(NamedTuple):
    """`host` is empty for every interface; IPv6 addresses stand without brackets."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{address(self.host, self.port)}"


def parse_listeners(text: str, *, advertised: bool = False) -> tuple[Listener, ...]:
    """The addresses in `text`: NAME://host:port, host:port or :port, comma-separated.

    A nameless address is called PLAINTEXT, further ones PLAINTEXT-2, PLAINTEXT-3, …. Names must differ, and addresses
    too, save those with port 0 and those that are `advertised`: a proxy may have one for two listeners. Raises
    ValueError that says what would be right.
    """
    found: list[Listener] = []
    for part in text.split(","):
        found.append(_parse_one(part.strip(), [listener.name for listener in found]))
    names = [listener.name for listener in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the name {name} is given twice; give each listener a name of its own")
    addresses = [(listener.host, listener.port) for listener in found if listener.port]
    if not advertised and len(set(addresses)) < len(addresses):
        raise ValueError("two listeners have one address; give each a port of its own")
    return tuple(found)


def _parse_one(text: str, taken: list[str]) -> Listener:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an address such as PLAINTEXT://host:9092, host:9092 or :9092")
    port = int(match["port"])
    if port > 65535:
        raise ValueError(f"the port of {text!r} must lie between 0 and 65535")
    name = match["name"].upper() if match["name"] else _free_name(taken)
    return Listener(name, match["host"].strip("[]"), port)


def _free_name(taken: list[str]) -> str:
    number = len(taken) + 1
    return DEFAULT_NAME if DEFAULT_NAME not in taken else f"{DEFAULT_NAME}-{number}"


def protocols_by_name(text: str) -> dict[str, str]:
    """Listener name → security protocol, from listener.security.protocol.map. A name that it lacks speaks the protocol
    that has this name. Raises ValueError for what is no protocol, and for a name that has two."""
    given: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, sign, kind = (part.strip().upper() for part in pair.partition(":"))
        if not sign or not name:
            raise ValueError(f"listener.security.protocol.map={text}: {pair!r} must be NAME:PROTOCOL")
        if kind not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise ValueError(f"listener.security.protocol.map={text}: {kind!r} must be one of {known}")
        if given.setdefault(name, kind) != kind:
            raise ValueError(f"listener.security.protocol.map={text}: {name} has two protocols; leave it one of them")
    return {protocol: protocol for protocol in PROTOCOLS} | given


def protocol_of(name: str, protocols: Mapping[str, str]) -> str:
    """What the listener `name` speaks, by `protocols_by_name`; what is called PLAINTEXT-…, as further addresses without
    a name are, speaks PLAINTEXT.

    Raises ValueError(problem, remedy) where nothing says it: to serve such a listener in plain text would let in
    everybody for a misspelt name.
    """
    if name.startswith(f"{DEFAULT_NAME}-"):
        return protocols.get(name, DEFAULT_NAME)
    if name not in protocols:
        known = ", ".join(PROTOCOLS)
        raise ValueError(
            f"nothing says which protocol the listener {name} speaks",
            f"add {name}:PROTOCOL to listener.security.protocol.map, PROTOCOL being one of {known}",
        )
    return protocols[name]


def of_clients(listeners: tuple[Listener, ...], controller: tuple[str, ...]) -> tuple[Listener, ...]:
    """The listeners without those of a KRaft controller. Raises ValueError where none is left."""
    skip = {name.upper() for name in controller}
    kept = tuple(listener for listener in listeners if listener.name not in skip)
    if not kept:
        raise ValueError("no listener is left for clients; add one such as PLAINTEXT://:9092")
    return kept


def listening(bound: Sequence[tuple[Listener, str]]) -> str:
    """Where a broker listens, for the line that says it is ready, of (listener with the port that it got, protocol).

    One that is called PLAINTEXT and speaks it is its address, `127.0.0.1:9092`. Others have their names, as Kafka
    writes `listeners`, and where a name is not that of its protocol `protocols=` follows, as
    `listener.security.protocol.map` has it.
    """
    (first, protocol), *more = bound
    if not more and first.name == protocol == DEFAULT_NAME:
        return address(first.host, first.port)
    listeners = ",".join(str(listener) for listener, _ in bound)
    if all(listener.name == protocol for listener, protocol in bound):
        return listeners
    protocols = ",".join(f"{listener.name}:{protocol}" for listener, protocol in bound)
    return f"{listeners} protocols={protocols}"


def advertise(
    listeners: tuple[Listener, ...], advertised: tuple[Listener, ...], bound: Mapping[str, int], hostname: str
) -> tuple[Listener, ...]:
    """What clients are told, in the order of `listeners`. `bound` gives the port that each name got.

    An advertised address rules (its port 0 means the bound one); else a listener's own host, or `hostname`
    where it takes every interface.
    """
    told = {listener.name: listener for listener in advertised}
    out = []
    for listener in listeners:
        shown = told.get(listener.name, listener)
        host = hostname if shown.host in ANY_HOST else shown.host
        port = shown.port if listener.name in told and shown.port else bound.get(listener.name, listener.port)
        out.append(Listener(listener.name, host, port))
    return tuple(out)


def following(where: str, count: int) -> dict[int, str]:
    """Node id → where it listens, of `count` brokers from 1 on: ports follow one another from that of `where` on; 0
    takes a free one for each. Raises ValueError that says what would be right."""
    found = parse_listeners(where)
    if len(found) != 1:
        raise ValueError("with --brokers give one HOST:PORT; the brokers take ports from there on")
    _, host, first = found[0]
    last = first + count - 1
    if first and last > MAX_PORT:
        raise ValueError(f"{count} brokers would take ports up to {last}; give a port below {MAX_PORT - count + 2}")
    return {node: address(host or "127.0.0.1", first + node - 1 if first else 0) for node in range(1, count + 1)}
