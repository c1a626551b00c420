"""Coordination `zookeeper`: brokers in processes of their own share Apache Kafka's nodes in ZooKeeper, and may share
them with brokers of Apache Kafka 3.

    layout, entities   the nodes: paths and JSON, both ways; pure.  tokens: those of delegation tokens
    plan               what a controller writes for its changes; pure
    options            settings, addresses; pure
    client             kazoo with our TLS, answers of bounded size, and the reason of each failure
    tickets            its login by Kerberos
    refusals           these reasons, as problem and remedy; pure
    connection         a client, bounded in time
    reading, writing   nodes to facts; what any broker may write
    watched            what is watched, read anew and reported
    settings_reads     reads that nobody waits for
    session            `contracts.SharedCoordination`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logkernel.config.definitions import Setting
from logkernel.config.values import BOOLEAN, INT, LIST, PASSWORD, STRING, Between
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
        "How long a start waits for ZooKeeper, and for each of its answers; by default as long as"
        " zookeeper.session.timeout.ms.",
    ),
    Setting(
        "zookeeper.max.in.flight.requests", INT, "10", Between(1, 1_000),
        "Requests that may wait for ZooKeeper's answer.",
    ),
    Setting(
        "zookeeper.set.acl", BOOLEAN, "false", None,
        "Let only this broker's user change the nodes that it makes. All may read them, but for those of users, brokers"
        " and delegation tokens. Nodes that are there keep their ACLs.",
    ),
    Setting(
        "zookeeper.sasl.jaas.config", PASSWORD, None, None,
        "As whom this broker logs in to ZooKeeper by SASL: the section Client of Kafka's JAAS file, or the whole file's"
        ' text; org.apache.zookeeper.server.auth.DigestLoginModule required username="…" password="…"; or Kerberos by'
        " com.sun.security.auth.module.Krb5LoginModule, with a keytab and a principal, or a ticket cache. A setting of"
        " logkernel: Kafka reads a file that java.security.auth.login.config names.",
        own=True,
    ),
    Setting(
        "logkernel.zookeeper.digest", PASSWORD, None, None,
        "user:password, as whom brokers are known to ZooKeeper by its scheme digest, without SASL. A setting of"
        " logkernel, not of Kafka.",
        own=True,
    ),
    Setting("zookeeper.ssl.client.enable", BOOLEAN, "false", None, "Speak TLS with ZooKeeper."),
    Setting(
        "zookeeper.clientCnxnSocket", STRING, None, None,
        "Kafka needs org.apache.zookeeper.ClientCnxnSocketNetty here for TLS; of no effect.", inert=True,
    ),
    Setting(
        "zookeeper.ssl.truststore.location", STRING, None, None,
        "File of the certificates that sign ZooKeeper's; the system's without it.",
    ),
    Setting(
        "zookeeper.ssl.truststore.type", STRING, None, None,
        "PEM, PKCS12 or JKS; by default what the file's name ends with: .pem, .p12, .pfx or .jks.",
    ),
    Setting("zookeeper.ssl.truststore.password", PASSWORD, None, None, "The password of that file."),
    Setting(
        "zookeeper.ssl.keystore.location", STRING, None, None,
        "File of this broker's certificate and key, where ZooKeeper asks for them.",
    ),
    Setting(
        "zookeeper.ssl.keystore.type", STRING, None, None,
        "PEM, PKCS12 or JKS; by default what the file's name ends with: .pem, .p12, .pfx or .jks.",
    ),
    Setting("zookeeper.ssl.keystore.password", PASSWORD, None, None, "The password of that file and its key."),
    Setting(
        "zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", None,
        "HTTPS: the certificate has to name the server's host; empty: any host.",
    ),
    Setting(
        "zookeeper.ssl.protocol", STRING, "TLSv1.2", None,
        "The version of TLS, where zookeeper.ssl.enabled.protocols is not set: TLSv1.2 or TLSv1.3.",
    ),
    Setting("zookeeper.ssl.enabled.protocols", LIST, None, None, "The versions of TLS: TLSv1.2, TLSv1.3, or both."),
    Setting(
        "zookeeper.ssl.cipher.suites", LIST, None, None,
        "Suites of TLS, by Java's names or OpenSSL's; the library's choice without it.",
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
