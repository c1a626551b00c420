"""Broker settings of the services: consumer groups, offsets, transactions, producer ids."""

from __future__ import annotations

from logkernel.config.definitions import Setting
from logkernel.config.table_topic import POSITIVE
from logkernel.config.values import BOOLEAN, INT, LIST, LONG, SHORT, STRING, Between, Each, OneOf, Validator

AT_LEAST_0 = Between(0)
REFRESH = Between(10_000)


class _Codec(OneOf):
    """A codec by its number in a batch's attributes."""

    def __init__(self) -> None:
        super().__init__("0", "1", "2", "3", "4")

    def __call__(self, value: int) -> None:
        super().__call__(str(value))


def _row(
    name: str, kind: int, default: str, validator: Validator | None, doc: str, *, dynamic: bool = False
) -> Setting:
    return Setting(name, kind, default, validator, doc, dynamic=dynamic)


ROWS: tuple[Setting, ...] = (
    # consumer groups
    _row("group.min.session.timeout.ms", INT, "6000", None, "Shortest session timeout that a member may ask for."),
    _row("group.max.session.timeout.ms", INT, "1800000", None, "Longest session timeout that a member may ask for."),
    _row(
        "group.initial.rebalance.delay.ms", INT, "3000", None,
        "How long an empty group waits for more members before its first rebalance.",
    ),
    _row("group.max.size", INT, "2147483647", POSITIVE, "Members that a group may have."),
    # consumer groups by the protocol of KIP-848
    _row(
        "group.consumer.assignors", LIST, "uniform,range", Each(OneOf("uniform", "range"), empty=False),
        "Assignors that members may ask for; the first is for groups whose members ask for none.",
    ),
    _row(
        "group.consumer.assignment.interval.ms", INT, "1000", AT_LEAST_0,
        "Shortest time between two assignments of a group.",
    ),
    _row(
        "group.consumer.min.assignment.interval.ms", INT, "0", AT_LEAST_0,
        "Lower bound of group.consumer.assignment.interval.ms.",
    ),
    _row(
        "group.consumer.max.assignment.interval.ms", INT, "15000", AT_LEAST_0,
        "Upper bound of group.consumer.assignment.interval.ms.",
    ),
    _row("group.consumer.session.timeout.ms", INT, "45000", POSITIVE, "How long a member may be silent."),
    _row(
        "group.consumer.min.session.timeout.ms", INT, "45000", POSITIVE,
        "Lower bound of group.consumer.session.timeout.ms.",
    ),
    _row(
        "group.consumer.max.session.timeout.ms", INT, "60000", POSITIVE,
        "Upper bound of group.consumer.session.timeout.ms.",
    ),
    _row(
        "group.consumer.heartbeat.interval.ms", INT, "5000", POSITIVE,
        "How often members are told to send heartbeats; below the session timeout.",
    ),
    _row(
        "group.consumer.min.heartbeat.interval.ms", INT, "5000", POSITIVE,
        "Lower bound of group.consumer.heartbeat.interval.ms.",
    ),
    _row(
        "group.consumer.max.heartbeat.interval.ms", INT, "15000", POSITIVE,
        "Upper bound of group.consumer.heartbeat.interval.ms.",
    ),
    _row("group.consumer.max.size", INT, "2147483647", POSITIVE, "Members that a group of the new protocol may have."),
    _row(
        "group.consumer.migration.policy", STRING, "bidirectional",
        OneOf("bidirectional", "upgrade", "downgrade", "disabled"),
        "Which way live groups may move between the classic and the new protocol.",
    ),
    _row(
        "group.consumer.regex.refresh.interval.ms", INT, "600000", REFRESH,
        "How often subscriptions by regular expression are looked at though no topic changed.",
    ),
    # offsets
    _row("offset.metadata.max.bytes", INT, "4096", None, "Longest text that a commit may carry beside its offset."),
    _row("offsets.commit.timeout.ms", INT, "5000", POSITIVE, "How long a commit waits for its replicas."),
    _row("offsets.load.buffer.size", INT, "5242880", POSITIVE, "Bytes read at once when offsets are loaded."),
    _row(
        "offsets.retention.minutes", INT, "10080", POSITIVE,
        "How long offsets are kept once their group is empty or no longer subscribes.",
    ),
    _row(
        "offsets.retention.check.interval.ms", LONG, "600000", POSITIVE,
        "How often offsets are looked through for old ones.",
    ),
    _row("offsets.topic.compression.codec", INT, "0", _Codec(), "Codec number of __consumer_offsets; 0 is none."),
    _row(
        "offsets.topic.num.partitions", INT, "50", POSITIVE,
        "Partitions of __consumer_offsets; not to be changed later.",
    ),
    _row(
        "offsets.topic.replication.factor", SHORT, "3", POSITIVE,
        "Replicas of __consumer_offsets; fewer where there are fewer brokers.",
    ),
    _row("offsets.topic.segment.bytes", INT, "104857600", POSITIVE, "Segment size of __consumer_offsets."),
    # transactions
    _row("transaction.max.timeout.ms", INT, "900000", POSITIVE, "Longest timeout that a transaction may ask for."),
    _row(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "10000", POSITIVE,
        "How often transactions are looked through for those whose time is up.",
    ),
    _row(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, "3600000", POSITIVE,
        "How often transactional ids are looked through for those that expired.",
    ),
    _row(
        "transaction.partition.verification.enable", BOOLEAN, "true", None,
        "Ask the coordinator whether a partition belongs to a transaction before its first write.", dynamic=True,
    ),
    _row(
        "add.partitions.to.txn.retry.backoff.ms", INT, "20", POSITIVE,
        "How long a write waits before it asks again for a coordinator that is busy with the transaction before.",
    ),
    _row(
        "add.partitions.to.txn.retry.backoff.max.ms", INT, "100", None,
        "How long a write asks again for such a coordinator, in all.",
    ),
    _row(
        "transaction.two.phase.commit.enable", BOOLEAN, "false", None,
        "Let producers hold prepared transactions open for an outside coordinator (KIP-939).",
    ),
    _row(
        "transaction.state.log.load.buffer.size", INT, "5242880", POSITIVE,
        "Bytes read at once when states are loaded.",
    ),
    _row("transaction.state.log.min.isr", INT, "2", POSITIVE, "min.insync.replicas of __transaction_state."),
    _row("transaction.state.log.num.partitions", INT, "50", POSITIVE, "Partitions of __transaction_state."),
    _row(
        "transaction.state.log.replication.factor", SHORT, "3", POSITIVE,
        "Replicas of __transaction_state; fewer where there are fewer brokers.",
    ),
    _row("transaction.state.log.segment.bytes", INT, "104857600", POSITIVE, "Segment size of __transaction_state."),
    _row(
        "transactional.id.expiration.ms", INT, "604800000", POSITIVE,
        "How long a transactional id is remembered after its last transaction.",
    ),
    # producer ids
    _row(
        "producer.id.expiration.ms", INT, "86400000", POSITIVE,
        "How long a partition remembers a producer's sequence after its last write.", dynamic=True,
    ),
    _row(
        "producer.id.expiration.check.interval.ms", INT, "600000", POSITIVE,
        "How often partitions are looked through for producers to forget.",
    ),
)
