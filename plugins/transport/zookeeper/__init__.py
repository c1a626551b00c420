"""Coordination `zookeeper`: brokers in processes of their own share Apache Kafka's nodes in ZooKeeper, and may share
them with brokers of Apache Kafka 3.

    layout, entities   the nodes: paths and JSON, both ways; pure.  tokens: those of delegation tokens
    plan               what a controller writes for its changes; pure
    options            settings, addresses; pure
    connection         kazoo, bounded in time and size
    reading, writing   nodes to facts; what any broker may write
    watched            what is watched, read anew and reported
    session            `contracts.SharedCoordination`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logkernel.config.definitions import Setting
from logkernel.config.values import BOOLEAN, INT, PASSWORD, STRING, Between
from logkernel.contracts import Coordination, Settings, StateLog
from logkernel.hookspecs import hookimpl

_MS = Between(1)
SETTINGS = (
    Setting(
        "zookeeper.connect", STRING, None, None,
        "The ZooKeeper servers that keep the cluster's metadata: host:port, separated by commas, then a chroot path;"
        " h1:2181,h2:2181/kafka. A broker that serves with this setting is a member of a cluster, unless coordination"
        " names another plugin.",
    ),
    Setting(
        "zookeeper.session.timeout.ms", INT, "18000", Between(300, 3_600_000),
        "After so long without a sign of life ZooKeeper takes a broker for dead.",
    ),
    Setting(
        "zookeeper.connection.timeout.ms", INT, None, _MS,
        "How long a start waits for ZooKeeper; by default as long as zookeeper.session.timeout.ms.",
    ),
    Setting(
        "zookeeper.max.in.flight.requests", INT, "10", Between(1, 1_000),
        "Requests that may wait for ZooKeeper's answer.",
    ),
    Setting(
        "zookeeper.set.acl", BOOLEAN, "false", None,
        "Let only the user of logkernel.zookeeper.digest change the nodes that brokers make; all may read them, but for"
        " those of users.",
    ),
    Setting(
        "logkernel.zookeeper.digest", PASSWORD, None, None,
        "user:password, as whom brokers are known to ZooKeeper (scheme digest). A setting of logkernel, not of Kafka.",
        own=True,
    ),
    Setting("zookeeper.ssl.client.enable", BOOLEAN, "false", None, "Speak TLS with ZooKeeper."),
    Setting(
        "zookeeper.clientCnxnSocket", STRING, None, None,
        "Kafka needs org.apache.zookeeper.ClientCnxnSocketNetty here for TLS; of no effect.", inert=True,
    ),
    Setting(
        "zookeeper.ssl.truststore.location", STRING, None, None,
        "PEM file of the certificates that sign ZooKeeper's; the system's without it.",
    ),
    Setting("zookeeper.ssl.truststore.type", STRING, None, None, "PEM, which a name in .pem says as well."),
    Setting(
        "zookeeper.ssl.truststore.password", PASSWORD, None, None,
        "PEM files of certificates have none; of no effect.", inert=True,
    ),
    Setting(
        "zookeeper.ssl.keystore.location", STRING, None, None,
        "PEM file of this broker's certificate and key, where ZooKeeper asks for them.",
    ),
    Setting("zookeeper.ssl.keystore.type", STRING, None, None, "PEM, which a name in .pem says as well."),
    Setting("zookeeper.ssl.keystore.password", PASSWORD, None, None, "The password of that key."),
    Setting(
        "zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", None,
        "HTTPS: the certificate has to name the server's host; empty: any host.",
    ),
)  # fmt: skip


@hookimpl
def logkernel_coordination(name: str, open_log: Callable[[], StateLog], settings: Settings) -> Coordination | None:
    if name != "zookeeper":
        return None
    from logkernel.errors import PluginError

    from .options import Options

    options = Options.of(settings)
    try:
        from .session import ZooKeeperSession
    except ImportError as error:
        raise PluginError(f"coordination=zookeeper needs kazoo ({error}); install logkernel[zookeeper]") from None
    return ZooKeeperSession(options)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("shared coordination", "zookeeper")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return SETTINGS
