"""What people type to administer a cluster: the command line tools of Kafka 3.9, against three brokers of any kind.

`run` tells a line a step, as `tool_steps` does. `record_cluster_tool_steps.py` asks three brokers of Apache
Kafka 3.9 over ZooKeeper; `test_cluster_tools.py` asks brokers of ours, and both in one cluster.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tool_steps
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from mixed_brokers import KAFKA, OURS, Members

import logkernel
from logkernel.requests.access import ComponentData, DescribeClientQuotasRequest
from logkernel.requests.cluster import MetadataRequest

TOPICS, CONFIGS, REASSIGN = tool_steps.TOPICS, tool_steps.CONFIGS, tool_steps.REASSIGN
OFFSETS, CONSUMERS, TRANSACTIONS = tool_steps.OFFSETS, tool_steps.CONSUMERS, tool_steps.TRANSACTIONS
ELECT = tool_steps.TOOLS + "LeaderElectionCommand"
LOG_DIRS = tool_steps.TOOLS + "LogDirsCommand"
THROTTLE = "10000000"
"""Bytes a second."""
EXACTLY = 0
"""Kafka's number of a match of quotas."""
NUMBERS = itertools.count(1)
CLUSTERS = {
    "kafka": {1: KAFKA, 2: KAFKA, 3: KAFKA},
    "ours": {1: OURS, 2: OURS, 3: OURS},
    "mixed": {1: KAFKA, 2: OURS, 3: OURS},
}


class Steps:
    """Tools, and what else is done to the cluster between them."""

    def __init__(self, cluster: Members, tools: tool_steps.Tools) -> None:
        self.cluster, self.tools = cluster, tools

    def tool(self, name: str, main: str, *words: str, **options: Any) -> str:
        """Tools ask any broker: all of them know the same topics by then."""
        self.cluster.until(lambda: len(set(map(self._told, self.cluster.alive()))) == 1, "all brokers tell the same")
        return self.tools(name, main, *words, **options)

    def _told(self, node: int) -> str:
        found = self._ask(node, MetadataRequest(None, False))
        rows = sorted(
            (topic.name, row.partition_index, row.leader_id, tuple(row.replica_nodes), tuple(sorted(row.isr_nodes)))
            for topic in found.topics
            for row in topic.partitions
        )
        return f"{sorted(broker.node_id for broker in found.brokers)} {found.controller_id} {rows}"

    def _ask(self, node: int, request: Any) -> Any:
        with logkernel.connect(self.cluster.members[node].server.bootstrap) as log:
            return log.request(request)

    def heard(self) -> None:
        """All brokers know what was set of topics, clients and users: they hear of it in order, and this comes last."""
        value = float(next(NUMBERS))
        self.cluster.admin.alter_client_quotas({(("client-id", "steps"),): {"producer_byte_rate": value}})
        last = DescribeClientQuotasRequest([ComponentData("client-id", EXACTLY, "steps")])

        def has_heard(node: int) -> bool:
            return [one.value for row in self._ask(node, last).entries or () for one in row.values] == [value]

        for node in self.cluster.alive():
            self.cluster.until(partial(has_heard, node), f"broker {node} has heard all settings")

    def plan(self, name: str, *rows: tuple[str, int, tuple[int, ...]]) -> str:
        moves = [{"topic": topic, "partition": index, "replicas": nodes} for topic, index, nodes in rows]
        return self.tools.file(name, {"version": 1, "partitions": moves})

    def write(self, topic: str, partition: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "acks": "all"})
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition, timestamp=1_000 + number)
            assert producer.flush(180) == 0

    def whole(self, *topics: str) -> None:
        """All replicas are in sync."""

        def is_whole(topic: str) -> bool:
            return all(len(row.isr) == len(row.replicas) for row in self.cluster.rows(topic))

        for topic in topics:
            self.cluster.until(partial(is_whole, topic), f"{topic} is in sync")

    def unthrottled(self, node: int) -> None:
        """A broker of Kafka learns by a watch that its throttles were taken away, after that was answered."""

        def has_none() -> bool:
            return all(value != THROTTLE for name, value in self._settings(node) if name.endswith("throttled.rate"))

        self.cluster.until(has_none, f"broker {node} is not throttled")

    def known(self, name: str, value: str, *nodes: int) -> None:
        """Brokers learn by watches, too, what was set; whichever is asked next is to know it."""
        for node in nodes:
            self.cluster.until(lambda node=node: (name, value) in self._settings(node), f"broker {node} knows {name}")

    def _settings(self, node: int) -> list[tuple[str, str | None]]:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        resource = ConfigResource(ConfigResource.Type.BROKER, str(node))
        return [(name, one.value) for name, one in admin.describe_configs([resource])[resource].result(180).items()]

    def led(self, topic: str, leader: int) -> None:
        self.cluster.until(lambda: self.cluster.rows(topic)[0].leader == leader, f"broker {leader} leads {topic}")


def topics(do: Steps) -> None:
    tool = do.tool
    tool("create assigned", TOPICS, "--create", "--topic", "t", "--replica-assignment", "1:2:3,2:3:1")
    tool("create spread", TOPICS, "--create", "--topic", "s", "--partitions", "3", "--replication-factor", "3")
    for name, assignment in (("nobody", "1:9"), ("twice", "1:1"), ("uneven", "1:2,3"), ("nonsense", "1:x")):
        tool(f"create {name}", TOPICS, "--create", "--topic", "bad", "--replica-assignment", assignment)
    tool("create too many", TOPICS, "--create", "--topic", "bad", "--partitions", "1", "--replication-factor", "4")
    tool("create with setting", TOPICS, "--create", "--topic", "m", "--replica-assignment", "1:2",
         "--config", "min.insync.replicas=2")  # fmt: skip
    do.whole("t", "s", "m")
    tool("describe", TOPICS, "--describe", "--topic", "t")
    tool("describe setting", TOPICS, "--describe", "--topic", "m")
    tool("alter assigned", TOPICS, "--alter", "--topic", "t", "--partitions", "3",
         "--replica-assignment", "1:2:3,2:3:1,3:1:2")  # fmt: skip
    tool("alter nobody", TOPICS, "--alter", "--topic", "m", "--partitions", "2", "--replica-assignment", "1:2,1:9")
    tool("alter down", TOPICS, "--alter", "--topic", "t", "--partitions", "1")
    do.whole("t")
    tool("describe altered", TOPICS, "--describe", "--topic", "t")
    tool("delete", TOPICS, "--delete", "--topic", "s")
    do.cluster.until(lambda: "s" not in do.cluster.client.get_children("/brokers/topics"), "s is deleted")
    tool("list", TOPICS, "--list")


def without_a_broker(do: Steps) -> None:
    """Broker 2 stops: the tools find what is not whole, and the leader that is not preferred."""
    tool = do.tool
    do.cluster.stop(2)
    do.cluster.until(lambda: all(2 not in row.isr for row in do.cluster.rows("t")), "broker 2 is out of sync")
    tool("under-replicated", TOPICS, "--describe", "--under-replicated-partitions", "--topic", "t")
    tool("under min isr", TOPICS, "--describe", "--under-min-isr-partitions")
    tool("at min isr", TOPICS, "--describe", "--at-min-isr-partitions", "--topic", "t")
    tool("unavailable", TOPICS, "--describe", "--unavailable-partitions")
    tool("elect one that is away", ELECT, "--election-type", "preferred", "--topic", "t", "--partition", "1")
    bad = do.plan("away.json", ("m", 0, (1, 2, 3)), ("t", 0, (2, 1)))
    tool("reassign to one that is away", REASSIGN, "--reassignment-json-file", bad, "--execute")
    tool("log dirs of one that is away", LOG_DIRS, "--describe", "--broker-list", "2")
    do.cluster.start(2)
    do.whole("t", "m")


def elections(do: Steps) -> None:
    tool = do.tool
    one = ("--topic", "t", "--partition", "1")
    tool("elect preferred", ELECT, "--election-type", "preferred", *one)
    tool("elect preferred again", ELECT, "--election-type", "preferred", *one)
    tool("elect unclean in vain", ELECT, "--election-type", "unclean", *one)
    tool("elect no topic", ELECT, "--election-type", "preferred", "--topic", "none", "--partition", "0")
    rows = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 9}]
    tool("elect by file", ELECT, "--election-type", "preferred",
         "--path-to-json-file", do.tools.file("elect.json", {"partitions": rows}))  # fmt: skip


def unclean(do: Steps) -> None:
    """Broker 1 was away when 2 wrote, and 2 is away now."""
    tool = do.tool
    tool("create unclean", TOPICS, "--create", "--topic", "u", "--replica-assignment", "1:2")
    do.whole("u")
    do.write("u", 0, 1)
    do.cluster.stop(1)
    do.led("u", 2)
    do.write("u", 0, 1)
    do.cluster.stop(2)
    do.led("u", -1)
    do.cluster.start(1)
    tool("nobody leads", TOPICS, "--describe", "--unavailable-partitions", "--topic", "u")
    tool("elect unclean", ELECT, "--election-type", "unclean", "--topic", "u", "--partition", "0")
    do.led("u", 1)
    tool("offsets after the election", OFFSETS, "--topic", "u")
    do.cluster.start(2)
    do.whole("u", "t", "m")
    tool("led uncleanly", TOPICS, "--describe", "--topic", "u")


def reassignments(do: Steps) -> None:
    tool = do.tool
    there = do.plan("there.json", ("m", 0, (3, 1)))
    file = ("--reassignment-json-file", there)
    tool("reassign", REASSIGN, *file, "--execute")
    do.cluster.until(lambda: list(do.cluster.rows("m")[0].replicas) == [3, 1], "m is moved")
    tool("reassign verify", REASSIGN, *file, "--verify")
    tool("reassign list", REASSIGN, "--list")
    tool("reassign cancel what is over", REASSIGN, *file, "--cancel")
    tool("describe moved", TOPICS, "--describe", "--topic", "m")
    nobody = do.plan("nobody.json", ("m", 0, (1, 9)))
    tool("reassign to nobody", REASSIGN, "--reassignment-json-file", nobody, "--execute")
    none = do.plan("none.json", ("none", 0, (1, 2)))
    tool("reassign no topic", REASSIGN, "--reassignment-json-file", none, "--execute")
    tool("reassign verify no topic", REASSIGN, "--reassignment-json-file", none, "--verify")


def reassignments_under_way(do: Steps) -> None:
    """Broker 2, where to the partition moves, died before it could copy anything."""
    tool = do.tool
    file = ("--reassignment-json-file", do.plan("back.json", ("m", 0, (1, 2))))
    do.cluster.elect_controller(1)
    os.kill(do.cluster.members[2].server.pid, signal.SIGSTOP)
    do.cluster.admin.alter_partition_reassignments({("m", 0): [1, 2]})
    do.cluster.kill(2)
    tool("move is listed", REASSIGN, "--list")
    tool("move is verified", REASSIGN, *file, "--verify")
    tool("move begins again", REASSIGN, *file, "--execute")
    tool("move is described", TOPICS, "--describe", "--topic", "m")
    tool("move is cancelled", REASSIGN, *file, "--cancel", "--preserve-throttles")  # broker 2 has no throttle to end
    do.cluster.until(lambda: list(do.cluster.rows("m")[0].replicas) == [1, 3], "all know that it is cancelled")
    tool("move is not listed", REASSIGN, "--list")
    do.cluster.start(2)
    do.whole("m", "t", "u")


def throttles(do: Steps) -> None:
    tool = do.tool
    file = ("--reassignment-json-file", do.plan("throttled.json", ("m", 0, (1, 2))))
    tool("throttled", REASSIGN, *file, "--execute", "--throttle", THROTTLE)
    do.heard()
    for node in "123":
        tool(f"throttle of broker {node}", CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", node)
    tool("throttle of topic", CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", "m")
    do.cluster.until(lambda: list(do.cluster.rows("m")[0].replicas) == [1, 2], "m is moved")
    do.whole("m")
    tool("throttled verify", REASSIGN, *file, "--verify")
    do.heard()
    tool("throttle of topic ended", CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", "m")
    do.unthrottled(1)
    tool("throttle of broker ended", CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1")


def configs(do: Steps) -> None:
    def alter(name: str, kind: str, entity: str | None, *words: str) -> None:
        who = ["--entity-default"] if entity is None else ["--entity-name", entity]
        do.tool(f"configs {name}", CONFIGS, "--entity-type", kind, *who, *words)
        if "--alter" in words and kind != "brokers":
            do.heard()

    alter("broker", "brokers", "2", "--alter", "--add-config", "log.cleaner.backoff.ms=12345")
    do.known("log.cleaner.backoff.ms", "12345", 2)
    alter("broker now", "brokers", "2", "--describe")
    alter("other broker", "brokers", "3", "--describe")
    alter("broker deleted", "brokers", "2", "--alter", "--delete-config", "log.cleaner.backoff.ms")
    alter("broker read only", "brokers", "2", "--alter", "--add-config", "log.dirs=/x")
    alter("all brokers", "brokers", None, "--alter", "--add-config", "log.cleaner.backoff.ms=20000")
    do.known("log.cleaner.backoff.ms", "20000", 1, 2, 3)
    alter("all brokers now", "brokers", None, "--describe")
    alter("all brokers deleted", "brokers", None, "--alter", "--delete-config", "log.cleaner.backoff.ms")
    alter("topic", "topics", "t", "--alter", "--add-config", "retention.ms=1234567,cleanup.policy=[compact,delete]")
    alter("topic now", "topics", "t", "--describe")
    alter("topic deleted", "topics", "t", "--alter", "--delete-config", "cleanup.policy,retention.ms")
    alter("topic bad", "topics", "t", "--alter", "--add-config", "no.such=1")
    alter("client", "clients", "c", "--alter", "--add-config", "producer_byte_rate=1000,request_percentage=50")
    alter("client now", "clients", "c", "--describe")
    alter("user", "users", "ann", "--alter", "--add-config", "consumer_byte_rate=1000")
    alter("user scram", "users", "ann", "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]")
    alter("user now", "users", "ann", "--describe")
    alter("user deleted", "users", "ann", "--alter", "--delete-config", "consumer_byte_rate")
    alter("user scram deleted", "users", "ann", "--alter", "--delete-config", "SCRAM-SHA-256")
    alter("user gone", "users", "ann", "--describe")
    alter("ip", "ips", "127.0.0.1", "--alter", "--add-config", "connection_creation_rate=1000")
    alter("ip now", "ips", "127.0.0.1", "--describe")


def configs_of_zookeeper(do: Steps) -> None:
    """What the tool still writes to ZooKeeper itself, beside the brokers."""
    at = {"to": "--zookeeper", "at": do.cluster.zookeeper}

    def alter(name: str, kind: str, entity: str, *words: str) -> None:
        do.tool(f"zookeeper {name}", CONFIGS, "--entity-type", kind, "--entity-name", entity, *words, **at)

    alter("scram", "users", "bob", "--alter", "--add-config", "SCRAM-SHA-512=[iterations=4096,password=x]")
    alter("scram now", "users", "bob", "--describe")
    alter("quota", "users", "bob", "--alter", "--add-config", "consumer_byte_rate=1")
    alter("running broker", "brokers", "1", "--alter", "--add-config", "log.cleaner.backoff.ms=1")
    alter("broker", "brokers", "1", "--describe")
    alter("topic", "topics", "t", "--describe")
    bob = ("--describe", "--entity-type", "users", "--entity-name", "bob")
    do.cluster.until(lambda: "SCRAM-SHA-512" in do.tools.quietly(CONFIGS, *bob), "the brokers know what the tool wrote")
    do.tool("scram by the brokers", CONFIGS, *bob)


def records(do: Steps) -> None:
    tool = do.tool
    for partition in range(3):
        do.write("t", partition, 5)
    do.cluster.until(lambda: all(do.cluster.watermark("t", index) == 5 for index in range(3)), "all is replicated")
    for when in ("-1", "-2", "-3", "earliest", "latest", "max-timestamp", "1002", "99999999999999"):
        tool(f"offsets at {when}", OFFSETS, "--topic", "t", "--time", when)
    tool("offsets of a pattern", OFFSETS, "--topic-partitions", "t:0-2,u")
    tool("log dirs", LOG_DIRS, "--describe", "--topic-list", "t", "--broker-list", "1,2,3")
    tool("log dirs of nobody", LOG_DIRS, "--describe", "--broker-list", "9")
    rows = [{"topic": "t", "partition": 0, "offset": 3}, {"topic": "t", "partition": 1, "offset": -1}]
    good = do.tools.file("records.json", {"partitions": rows, "version": 1})
    tool("records delete", tool_steps.TOOLS + "DeleteRecordsCommand", "--offset-json-file", good)
    rows = [{"topic": "t", "partition": 2, "offset": 99}, {"topic": "none", "partition": 0, "offset": 1}]
    bad = do.tools.file("bad-records.json", {"partitions": rows[:1], "version": 1})
    tool("records delete too many", tool_steps.TOOLS + "DeleteRecordsCommand", "--offset-json-file", bad)
    tool("offsets after deletion", OFFSETS, "--topic", "t", "--time", "-2")


def groups(do: Steps) -> None:
    tool = do.tool
    consumer = Consumer({"bootstrap.servers": do.cluster.bootstrap, "group.id": "g", "enable.auto.commit": False})
    for _ in range(200):  # until the offsets' topic is there
        try:
            consumer.commit(offsets=[TopicPartition("t", 0, 4), TopicPartition("t", 1, 5)], asynchronous=False)
        except Exception as error:
            failed = error
        else:
            break
    else:
        raise failed
    consumer.close()
    tool("groups list", CONSUMERS, "--list")
    tool("groups list state", CONSUMERS, "--list", "--state")
    tool("groups describe", CONSUMERS, "--describe", "--group", "g")
    tool("groups describe state", CONSUMERS, "--describe", "--group", "g", "--state")
    tool("groups describe members", CONSUMERS, "--describe", "--group", "g", "--members")
    tool("groups describe none", CONSUMERS, "--describe", "--group", "none")
    reset = ("--reset-offsets", "--group", "g", "--topic", "t")
    tool("groups reset dry", CONSUMERS, *reset, "--to-latest", "--dry-run")
    tool("groups reset", CONSUMERS, *reset, "--to-earliest", "--execute")
    tool("groups reset by shift", CONSUMERS, *reset, "--shift-by", "1", "--execute")
    tool("groups delete offsets", CONSUMERS, "--delete-offsets", "--group", "g", "--topic", "t:0")
    tool("groups delete", CONSUMERS, "--delete", "--group", "g")
    tool("groups delete again", CONSUMERS, "--delete", "--group", "g")
    tool("transactions list", TRANSACTIONS, "list")
    tool("transactions producers", TRANSACTIONS, "describe-producers", "--topic", "t", "--partition", "0")


def versions(do: Steps) -> None:
    do.tool("features", tool_steps.FEATURES, "describe")
    do.tool("features upgrade", tool_steps.FEATURES, "upgrade", "--feature", "no.such=1")
    do.tool("quorum", tool_steps.TOOLS + "MetadataQuorumCommand", "describe", "--status")


PARTS: tuple[Callable[[Steps], None], ...] = (
    topics, without_a_broker, elections, unclean, reassignments, reassignments_under_way, throttles, configs,
    configs_of_zookeeper, records, groups, versions,
)  # fmt: skip


def run(cluster: Members, command: list[str], tell: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tools = tool_steps.Tools(cluster.bootstrap, command, Path(scratch), tell)
        tools.patterns.append((r"(?<=Isr: )[\d,]+", lambda found: ",".join(sorted(found[0].split(",")))))
        tools.patterns.append((r"(salt|stored_key|server_key)=[^,\\]+", r"\1=SECRET"))
        tools.patterns.append((r"BROKER-\d \(\d\)", "COORDINATOR"))
        tools.patterns.append((r"Elr: N/A LastKnownElr: N/A", "Elr: LastKnownElr: "))  # Kafka 3.9 cannot be asked
        tools.equal += [
            (member.server.bootstrap.replace(":", separator), f"BROKER-{node}")
            for node, member in cluster.members.items()
            for separator in (":", " ")
        ]
        tools.equal.append((cluster.zookeeper, "ZOOKEEPER"))
        try:
            for part in PARTS:
                part(Steps(cluster, tools))
        finally:
            tools.close()
