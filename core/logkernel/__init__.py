"""logkernel: the commit log as a Python microkernel.

Embed it like SQLite, serve it like Kafka, query it like a table.

    open(path)          a log in this process, durable; without a path, in memory
    open_cluster(n)     n brokers in this process, replicated; for tests, teaching and embedding
    connect(servers)    a log behind a running cluster, this one's or Apache Kafka's
    aio                 the same three for asyncio
    admin               what `log.admin()` takes and gives
    hookspecs           every hook a plugin may implement
    contracts           the objects that plugins hand out
    errors              Kafka's error codes as exceptions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logkernel.client.consumer.consumer import Consumer as Consumer
    from logkernel.client.producer.producer import Producer as Producer
    from logkernel.client.vocabulary import RebalanceListener as RebalanceListener
    from logkernel.client.vocabulary import WakeupError as WakeupError
    from logkernel.cluster.cluster import Cluster as Cluster
    from logkernel.cluster.cluster import open_cluster as open_cluster
    from logkernel.embed import EmbeddedLog as EmbeddedLog
    from logkernel.embed import open as open
    from logkernel.hookspecs import hookimpl as hookimpl
    from logkernel.remote import RemoteLog as RemoteLog
    from logkernel.remote import connect as connect
    from logkernel.vocabulary import Record as Record
    from logkernel.vocabulary import TopicPartition as TopicPartition

__version__ = "0.1.0"

_LAZY = {
    "open": "logkernel.embed",
    "open_cluster": "logkernel.cluster.cluster",
    "Cluster": "logkernel.cluster.cluster",
    "connect": "logkernel.remote",
    "RemoteLog": "logkernel.remote",
    "Consumer": "logkernel.client.consumer.consumer",
    "Producer": "logkernel.client.producer.producer",
    "RebalanceListener": "logkernel.client.vocabulary",
    "WakeupError": "logkernel.client.vocabulary",
    "EmbeddedLog": "logkernel.embed",
    "Record": "logkernel.vocabulary",
    "TopicPartition": "logkernel.vocabulary",
    "hookimpl": "logkernel.hookspecs",
}
__all__ = [
    "Cluster",
    "Consumer",
    "EmbeddedLog",
    "Producer",
    "RebalanceListener",
    "Record",
    "RemoteLog",
    "TopicPartition",
    "WakeupError",
    "connect",
    "hookimpl",
    "open",
    "open_cluster",
]


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import on first use: `import logkernel` alone stays cheap."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'logkernel' has no attribute {name!r}")
