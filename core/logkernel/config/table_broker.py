"""Broker settings of identity, listeners, connections, topics and replication."""

from __future__ import annotations

from logkernel.config.definitions import Setting
from logkernel.config.table_topic import (
    ELECTIONS,
    FILTERS,
    INTERCEPTORS,
    ISR_POLICIES,
    NATURAL,
    PARTITIONERS,
    PLACEMENTS,
    POSITIVE,
    QUOTAS,
)
from logkernel.config.values import BOOLEAN, CLASS, INT, LIST, LONG, STRING, Between, Each, NonEmpty, OneOf, Validator

AS_VERSIONS = (
    "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3",
)  # fmt: skip
"""Releases of Kafka that the transport "tcp" can look like."""


class _Factor:
    """A replication factor. -1 (the broker's default) is not allowed for the default itself."""

    def __call__(self, value: int) -> None:
        if not 1 <= value <= 32767:
            raise ValueError(f"Value must be {self}")

    def __str__(self) -> str:
        return "between 1 and 32767"


def _row(
    name: str,
    kind: int,
    default: str | None,
    validator: Validator | None,
    doc: str,
    *,
    synonyms: str = "",
    dynamic: bool = False,
    own: bool = False,
    chooses: str = "",
    inert: bool = False,
    per_listener: bool = False,
) -> Setting:
    return Setting(
        name, kind, default, validator, doc, synonyms=tuple(synonyms.split()), dynamic=dynamic, own=own,
        chooses=chooses, inert=inert, per_listener=per_listener,
    )  # fmt: skip


ROWS: tuple[Setting, ...] = (
    # identity
    _row("node.id", INT, "1", NATURAL, "The id of this broker, unique in its cluster.", synonyms="broker.id"),
    _row("broker.id", INT, "-1", Between(-1), "Older name of node.id; if both are given, they must agree."),
    _row("broker.rack", STRING, None, None, "The rack of this broker; replicas are spread over racks."),
    _row(
        "coordination",
        STRING,
        "local",
        NonEmpty(),
        "The plugin that stores the cluster's metadata: `local` (in this broker's data directory), `memory` (lost at"
        " exit) or a plugin's. A setting of logkernel, not of Kafka.",
        own=True,
    ),
    _row(
        "authorizer.class.name",
        STRING,
        "",
        None,
        "The plugin that says what clients may do: `standard`, which Kafka's StandardAuthorizer and AclAuthorizer mean,"
        " too, or another by its name. Empty: everybody may do everything.",
    ),
    _row(
        "partitioner",
        STRING,
        "default",
        PARTITIONERS,
        "Default of the topic setting of the same name. A setting of logkernel, not of Kafka.",
        own=True,
        chooses="partitioner",
    ),
    _row(
        "election",
        STRING,
        "clean",
        ELECTIONS,
        "Default of the topic setting of the same name; the same setting as unclean.leader.election.enable. A setting"
        " of"
        " logkernel, not of Kafka.",
        own=True,
        chooses="election",
    ),
    _row(
        "isr",
        STRING,
        "time",
        ISR_POLICIES,
        "Default of the topic setting of the same name. A setting of logkernel, not of Kafka.",
        own=True,
        chooses="isr",
    ),
    _row(
        "placement",
        STRING,
        "kafka",
        PLACEMENTS,
        "Default of the topic setting of the same name. Own setting.",
        own=True,
        chooses="placement",
    ),
    _row(
        "produce.interceptors",
        LIST,
        "",
        INTERCEPTORS,
        "Default of the topic setting of the same name. A setting of logkernel, not of Kafka.",
        own=True,
        chooses="produce interceptor",
    ),
    _row(
        "fetch.filters",
        LIST,
        "",
        FILTERS,
        "Default of the topic setting of the same name. A setting of logkernel, not of Kafka.",
        own=True,
        chooses="fetch filter",
    ),
    _row(
        "quotas",
        LIST,
        "",
        QUOTAS,
        "Default of the topic setting of the same name. A setting of logkernel, not of Kafka.",
        own=True,
        chooses="quota",
    ),
    _row(
        "logkernel.sendfile",
        BOOLEAN,
        "true",
        None,
        "Send records from the page cache to the socket with sendfile; false copies them through the process. A"
        " setting of"
        " logkernel, not of Kafka.",
        own=True,
    ),
    _row(
        "logkernel.busy.poll.us",
        INT,
        "300",
        Between(0, 1_000_000),
        "Time in µs that the broker polls for the next request before it sleeps, while requests come that fast."
        " It lowers the latency of a client that waits for each answer, and uses up to one processor. 0 never polls."
        " A setting of logkernel, not of Kafka.",
        own=True,
    ),
    _row(
        "logkernel.as.version",
        STRING,
        "",
        OneOf("", *AS_VERSIONS),
        "A release of Apache Kafka, 2.8 to 4.3: clients are told of the APIs, versions and features that it had, and"
        " newer requests are refused as it would. Empty: everything that the broker speaks. What a release had behind a"
        " switch is off. For tests of clients. A setting of logkernel, not of Kafka.",
        own=True,
    ),
    # listeners
    _row(
        "listeners",
        LIST,
        "PLAINTEXT://127.0.0.1:9092",
        Each(empty=False),
        "Addresses to listen on: NAME://host:port, host:port or :port (every interface), separated by commas; port 0"
        " picks a free port. Kafka's default is every interface, ours is this machine only.",
    ),
    _row(
        "advertised.listeners",
        LIST,
        None,
        Each(),
        "Addresses that clients are told to connect to, by listener name, if they differ from `listeners`: in"
        " containers, behind address translation, or with 0.0.0.0.",
    ),
    _row(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        "Security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. A name that it lacks must"
        " be that of a protocol, and speaks it.",
    ),
    _row(
        "inter.broker.listener.name",
        STRING,
        None,
        None,
        "In a cluster, the listener through which brokers reach and command each other: only orders that come over it"
        " are obeyed. The default is the listener called PLAINTEXT. If clients use it too, any of them can command.",
    ),
    _row(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        None,
        "Names the inter-broker listener by its protocol, where inter.broker.listener.name is not given: PLAINTEXT,"
        " SSL, SASL_PLAINTEXT or SASL_SSL.",
    ),
    _row(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        None,
        "Mechanism by which this broker says to other brokers who it is, where their listener has SASL. Its user and"
        " password are in `listener.name.NAME.MECHANISM.sasl.jaas.config`.",
        dynamic=True,
    ),
    _row(
        "control.plane.listener.name",
        STRING,
        None,
        None,
        "In a cluster, a listener of its own for the controller's orders and for what brokers ask of the controller. By"
        " default these use the inter-broker listener. A setting of Kafka 3.9.",
    ),
    _row(
        "logkernel.command.listener.names",
        LIST,
        "",
        Each(),
        "In a cluster, names of further listeners over which other brokers may command this one: while you change"
        " inter.broker.listener.name, a broker after the other.",
        own=True,
    ),
    _row(
        "controller.listener.names",
        LIST,
        "",
        Each(),
        "Names in `listeners` of a KRaft controller; they are ignored, as there is none.",
    ),
    # connections
    _row(
        "connections.max.idle.ms",
        LONG,
        "600000",
        None,
        "Time in ms after which an idle connection is closed; negative never closes it.",
    ),
    _row(
        "max.connections",
        INT,
        "2147483647",
        NATURAL,
        "Maximum number of open connections of each listener.",
        dynamic=True,
        per_listener=True,
    ),
    _row(
        "max.connection.creation.rate",
        INT,
        "2147483647",
        NATURAL,
        "Connections a second that may be made to this broker, not counting a listener for brokers alone; one of a"
        " listener's own is for that listener (KIP-612). Connections that come faster wait.",
        dynamic=True,
        per_listener=True,
    ),
    _row(
        "max.connections.per.ip",
        INT,
        "2147483647",
        NATURAL,
        "Maximum number of open connections from one address.",
        dynamic=True,
    ),
    _row(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        None,
        "Limits for some addresses: host:limit, separated by commas.",
        dynamic=True,
    ),
    # client quotas
    _row(
        "client.quota.callback.class",
        CLASS,
        None,
        None,
        "The plugin that says how much clients may use, by its name. Empty: the cluster's client quotas count, by"
        " Kafka's precedence. No class is loaded.",
    ),
    _row("quota.window.num", INT, "11", POSITIVE, "Number of samples that a client's rate is measured by (KIP-13)."),
    _row("quota.window.size.seconds", INT, "1", POSITIVE, "Length in seconds of one of these samples."),
    _row(
        "controller.quota.window.num",
        INT,
        "11",
        POSITIVE,
        "Number of samples of `controller_mutation_rate` (KIP-599): a client may save up what they all allow.",
    ),
    _row("controller.quota.window.size.seconds", INT, "1", POSITIVE, "Length in seconds of one of these samples."),
    # connections
    _row(
        "queued.max.requests",
        INT,
        "500",
        POSITIVE,
        "Length of Kafka's request queue; without effect: reading pauses at 100 unanswered requests of a connection.",
        inert=True,
    ),
    _row(
        "queued.max.request.bytes",
        LONG,
        "-1",
        None,
        "Size of Kafka's request queue in bytes; stored and described, without effect.",
        inert=True,
    ),
    _row(
        "request.timeout.ms", INT, "30000", None, "Time in ms that the broker waits for a response to its own requests."
    ),
    _row("socket.listen.backlog.size", INT, "50", POSITIVE, "Maximum number of connections that wait to be accepted."),
    _row(
        "socket.receive.buffer.bytes",
        INT,
        "102400",
        Between(-1),
        "SO_RCVBUF of connections, in bytes; -1 takes the system's default.",
    ),
    _row(
        "socket.send.buffer.bytes",
        INT,
        "102400",
        Between(-1),
        "SO_SNDBUF of connections, in bytes; -1 takes the system's default.",
    ),
    _row(
        "socket.request.max.bytes",
        INT,
        "104857600",
        POSITIVE,
        "Largest request in bytes; a larger one closes the connection.",
    ),
    _row(
        "socket.connection.setup.timeout.ms",
        LONG,
        "10000",
        None,
        "Time limit in ms to connect to another broker.",
    ),
    _row(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        "30000",
        None,
        "Upper bound of that time in ms; it grows with each failure.",
    ),
    # topics
    _row("num.partitions", INT, "1", POSITIVE, "Partitions of a topic that is created without a number of them."),
    _row(
        "default.replication.factor",
        INT,
        "1",
        _Factor(),
        "Replicas of a topic that is created without a replication factor.",
    ),
    _row("auto.create.topics.enable", BOOLEAN, "true", None, "Create a missing topic when a client asks for it."),
    _row("delete.topic.enable", BOOLEAN, "true", None, "Allow clients to delete topics."),
    _row(
        "max.request.partition.size.limit",
        INT,
        "2000",
        POSITIVE,
        "Maximum number of partitions in a response to DescribeTopicPartitions.",
    ),
    _row("min.insync.replicas", INT, "1", POSITIVE, "Default of the topic setting of the same name.", dynamic=True),
    _row(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        None,
        "Default of the topic setting of the same name.",
        dynamic=True,
    ),
    # fetching
    _row("fetch.max.bytes", INT, "57671680", Between(1024), "Maximum bytes of records in a response to a fetch."),
    _row(
        "max.incremental.fetch.session.cache.slots", INT, "1000", NATURAL, "Maximum number of fetch sessions (KIP-227)."
    ),
    # replication
    _row(
        "num.replica.fetchers",
        INT,
        "1",
        POSITIVE,
        "Threads of Kafka's followers for each leader; without effect: one connection fetches from each leader.",
        dynamic=True,
        inert=True,
    ),
    _row("replica.fetch.backoff.ms", INT, "1000", NATURAL, "Longest pause in ms of a follower after a failed fetch."),
    _row("replica.fetch.max.bytes", INT, "1048576", NATURAL, "Bytes that a follower fetches of one partition."),
    _row("replica.fetch.min.bytes", INT, "1", None, "Bytes for which a leader waits before it answers a follower."),
    _row("replica.fetch.response.max.bytes", INT, "10485760", NATURAL, "Bytes that a follower fetches in one request."),
    _row(
        "replica.fetch.wait.max.ms",
        INT,
        "500",
        None,
        "Time in ms that a leader may wait for them; below replica.lag.time.max.ms.",
    ),
    _row(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        "5000",
        None,
        "Time in ms between writes of high watermarks.",
    ),
    _row(
        "replica.lag.time.max.ms",
        LONG,
        "30000",
        None,
        "Time in ms after which a follower that lags behind leaves the ISR.",
    ),
    _row(
        "replica.selector.class",
        STRING,
        None,
        None,
        "Kafka's choice of the replica that a consumer reads (KIP-392); without effect: consumers read from leaders.",
        inert=True,
    ),
    _row("replica.socket.receive.buffer.bytes", INT, "65536", None, "SO_RCVBUF of a follower's connections, in bytes."),
    _row("replica.socket.timeout.ms", INT, "30000", None, "Time in ms that a follower waits for a response."),
    _row(
        "broker.session.timeout.ms",
        INT,
        "9000",
        Between(300, 3_600_000),
        "Time in ms after which a broker that gives no sign of life counts as dead; with --processes only.",
    ),
    _row("controlled.shutdown.enable", BOOLEAN, "true", None, "Move leadership to other brokers before stopping."),
    _row(
        "controlled.shutdown.max.retries",
        INT,
        "3",
        None,
        "Attempts to move leadership before the broker stops without it; 0 makes none.",
    ),
    _row(
        "controlled.shutdown.retry.backoff.ms",
        LONG,
        "5000",
        None,
        "Pause in ms between these attempts, where partitions remain that no replica in sync can take over.",
    ),
    _row("controller.socket.timeout.ms", INT, "30000", None, "How long the controller waits for a broker's answer."),
    _row("auto.leader.rebalance.enable", BOOLEAN, "true", None, "Return leadership to preferred leaders periodically."),
    _row(
        "leader.imbalance.check.interval.seconds",
        LONG,
        "300",
        POSITIVE,
        "Interval in seconds at which leadership is returned to preferred leaders.",
    ),
    _row(
        "leader.imbalance.per.broker.percentage",
        INT,
        "10",
        None,
        "Share in percent of a broker's preferred partitions that may be led elsewhere before leadership is returned.",
    ),
)
