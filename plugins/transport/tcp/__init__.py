"""The Kafka protocol over TCP, both halves.

wire, messages, frames    bytes: own primitives, messages from kio's schemas, frames and headers
api, registry, apis/      the APIs, a file each; start reading here;  releases: what Kafka's releases had of them
connection, request_buffer, sending, server     the listening half: a machine without I/O, and its asyncio driver
client, channel           the connecting half: a machine without I/O, a blocking and an asyncio driver
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Transport
from logkernel.hookspecs import hookimpl


@hookimpl
def logkernel_transport(name: str) -> Transport | None:
    if name != "tcp":
        return None
    from .transport import TcpTransport

    return TcpTransport()


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("transport", "tcp")]
