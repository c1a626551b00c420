"""Broker settings of identity, listeners, connections, topics and replication."""

from __future__ import annotations

from logkernel.config.definitions import Setting
from logkernel.config.table_topic import ELECTIONS, NATURAL, PARTITIONERS, POSITIVE
from logkernel.config.values import BOOLEAN, INT, LIST, LONG, STRING, Between, Each, NonEmpty, Validator


class _Factor:
    """A replication factor; -1 (the broker's default) has no meaning for the default itself."""

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
) -> Setting:
    return Setting(
        name, kind, default, validator, doc, synonyms=tuple(synonyms.split()), dynamic=dynamic, own=own,
        chooses=chooses,
    )  # fmt: skip


ROWS: tuple[Setting, ...] = (
    # identity
    _row("node.id", INT, "1", NATURAL, "This broker's number in its cluster.", synonyms="broker.id"),
    _row("broker.id", INT, "-1", Between(-1), "Older name of node.id; if both are given they must agree."),
    _row("broker.rack", STRING, None, None, "The rack this broker stands in; replicas are spread over racks."),
    _row(
        "coordination",
        STRING,
        "local",
        NonEmpty(),
        "The plugin that keeps the cluster's metadata: `local` (this broker's folder), `memory` (gone at exit)"
        " or a plugin's. Own setting of logkernel.",
        own=True,
    ),
    _row(
        "partitioner",
        STRING,
        "default",
        PARTITIONERS,
        "Default of the topic setting of the same name. Own setting.",
        own=True,
        chooses="partitioner",
    ),
    _row(
        "election",
        STRING,
        "clean",
        ELECTIONS,
        "Default of the topic setting of the same name; one with unclean.leader.election.enable. Own setting.",
        own=True,
        chooses="election",
    ),
    _row(
        "logkernel.sendfile",
        BOOLEAN,
        "true",
        None,
        "Send records straight from the page cache to the socket; off copies them through the process. Own setting.",
        own=True,
    ),
    _row(
        "logkernel.busy.poll.us",
        INT,
        "300",
        Between(0, 1_000_000),
        "Microseconds that the broker looks for the next request before it sleeps, while requests follow each other"
        " that fast: quicker answers to a client that waits for each, for up to one processor's time. 0 always"
        " sleeps. Own setting.",
        own=True,
    ),
    # listeners
    _row(
        "listeners",
        LIST,
        "PLAINTEXT://127.0.0.1:9092",
        Each(empty=False),
        "Where the broker listens: NAME://host:port, host:port or :port (every interface), comma-separated;"
        " port 0 takes a free one. Kafka's default is every interface, ours is this machine alone.",
    ),
    _row(
        "advertised.listeners",
        LIST,
        None,
        Each(),
        "What clients are told to connect to, by listener name, where it isn't what `listeners` says:"
        " in containers, behind address translation, or with 0.0.0.0.",
    ),
    _row(
        "listener.security.protocol.map",
        STRING,
        "PLAINTEXT:PLAINTEXT",
        None,
        "Security protocol of each listener name; PLAINTEXT is the one that is spoken.",
    ),
    _row("inter.broker.listener.name", STRING, None, None, "The listener by which brokers reach one another."),
    _row(
        "controller.listener.names",
        LIST,
        "",
        Each(),
        "Names in `listeners` that belong to a KRaft controller; there is none here, so they are left out.",
    ),
    # connections
    _row(
        "connections.max.idle.ms",
        LONG,
        "600000",
        None,
        "An idle connection is closed after this long; negative never.",
    ),
    _row("max.connections", INT, "2147483647", NATURAL, "Connections that are open at once.", dynamic=True),
    _row(
        "max.connections.per.ip",
        INT,
        "2147483647",
        NATURAL,
        "Connections that are open at once from one address.",
        dynamic=True,
    ),
    _row(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        None,
        "Other limits for some addresses: host:limit, comma-separated.",
        dynamic=True,
    ),
    _row(
        "queued.max.requests",
        INT,
        "500",
        POSITIVE,
        "Requests of one connection that may wait before reading pauses.",
    ),
    _row(
        "queued.max.request.bytes",
        LONG,
        "-1",
        None,
        "Bytes of requests that may wait before reading pauses; -1 no bound.",
    ),
    _row("request.timeout.ms", INT, "30000", None, "How long the broker waits for an answer to its own requests."),
    _row("socket.listen.backlog.size", INT, "50", POSITIVE, "Connections that may wait to be accepted."),
    _row(
        "socket.receive.buffer.bytes",
        INT,
        "102400",
        Between(-1),
        "SO_RCVBUF of connections; -1 leaves it to the system.",
    ),
    _row(
        "socket.send.buffer.bytes",
        INT,
        "102400",
        Between(-1),
        "SO_SNDBUF of connections; -1 leaves it to the system.",
    ),
    _row(
        "socket.request.max.bytes",
        INT,
        "104857600",
        POSITIVE,
        "The largest request that is read; a larger one closes.",
    ),
    _row(
        "socket.connection.setup.timeout.ms",
        LONG,
        "10000",
        None,
        "How long a connection to another broker may take.",
    ),
    _row(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        "30000",
        None,
        "Bound of that time as it grows with each failure.",
    ),
    # topics
    _row("num.partitions", INT, "1", POSITIVE, "Partitions of a topic that is created without a number."),
    _row("default.replication.factor", INT, "1", _Factor(), "Replicas of a topic that is created without a number."),
    _row("auto.create.topics.enable", BOOLEAN, "true", None, "Create a topic when a client first asks for it."),
    _row("delete.topic.enable", BOOLEAN, "true", None, "Let topics be deleted."),
    _row(
        "max.request.partition.size.limit",
        INT,
        "2000",
        POSITIVE,
        "Partitions that one answer to DescribeTopicPartitions holds.",
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
    _row("fetch.max.bytes", INT, "57671680", Between(1024), "Most bytes of records in one answer to a fetch."),
    _row("max.incremental.fetch.session.cache.slots", INT, "1000", NATURAL, "Fetch sessions that are kept (KIP-227)."),
    # replication
    _row(
        "num.replica.fetchers",
        INT,
        "1",
        POSITIVE,
        "Connections to each leader that followers fetch by.",
        dynamic=True,
    ),
    _row("replica.fetch.backoff.ms", INT, "1000", NATURAL, "Pause of a follower after a failed fetch."),
    _row("replica.fetch.max.bytes", INT, "1048576", NATURAL, "Bytes that a follower asks for of one partition."),
    _row("replica.fetch.min.bytes", INT, "1", None, "Bytes that a leader gathers before it answers a follower."),
    _row("replica.fetch.response.max.bytes", INT, "10485760", NATURAL, "Bytes that a follower asks for in all."),
    _row("replica.fetch.wait.max.ms", INT, "500", None, "How long a leader may gather; below replica.lag.time.max.ms."),
    _row("replica.high.watermark.checkpoint.interval.ms", LONG, "5000", None, "How often high watermarks are written."),
    _row("replica.lag.time.max.ms", LONG, "30000", None, "A follower this long behind leaves the in-sync replicas."),
    _row("replica.selector.class", STRING, None, None, "The plugin that picks the replica a consumer reads (KIP-392)."),
    _row("replica.socket.receive.buffer.bytes", INT, "65536", None, "SO_RCVBUF of a follower's connections."),
    _row("replica.socket.timeout.ms", INT, "30000", None, "How long a follower waits for an answer."),
    _row("controlled.shutdown.enable", BOOLEAN, "true", None, "Hand leadership over before stopping."),
    _row("controlled.shutdown.max.retries", INT, "3", None, "How often a broker asks before it stops without that."),
    _row("controlled.shutdown.retry.backoff.ms", LONG, "5000", None, "Pause before it asks again."),
    _row("controller.socket.timeout.ms", INT, "30000", None, "How long the controller waits for a broker's answer."),
    _row("auto.leader.rebalance.enable", BOOLEAN, "true", None, "Have preferred leaders lead again, by and by."),
    _row(
        "leader.imbalance.check.interval.seconds", LONG, "300", POSITIVE, "How often the controller looks after that."
    ),
    _row(
        "leader.imbalance.per.broker.percentage",
        INT,
        "10",
        None,
        "How much of what a broker is the preferred leader of may be led elsewhere.",
    ),
)
