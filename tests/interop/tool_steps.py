"""What people type: Kafka's own command line tools, one after the other, against any broker.

`run` tells a line a step: its name, a tab, the exit code, a tab, what was printed with everything that differs from run
to run made equal. `record_coordinator_steps.py tools` asks Apache Kafka.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator_steps import find_coordinators
from coordinator_steps.asks import Steps
from kafka_tools import KafkaTools

TOOLS = "org.apache.kafka.tools."
TOPICS = TOOLS + "TopicCommand"
GROUPS = TOOLS + "GroupsCommand"
CONSUMERS = TOOLS + "consumer.group.ConsumerGroupCommand"
SHARES = TOOLS + "consumer.group.ShareGroupCommand"
STREAMS = TOOLS + "streams.StreamsGroupCommand"
TRANSACTIONS = TOOLS + "TransactionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
FEATURES = TOOLS + "FeatureCommand"
METRICS = TOOLS + "ClientMetricsCommand"
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"
OFFSETS = TOOLS + "GetOffsetShell"
ACLS = TOOLS + "AclCommand"

EQUAL = (
    (r" +", " "),
    (r"(\\n at [^\\]*|\\n \.\.\. \d+ more)+", ""),  # what Java's stack traces add
    (r"\\n(Caused by: |java\.util\.concurrent\.|org\.apache\.kafka\.)[^\\]*", ""),
    (r"steps-[0-9a-f-]{36}", "MEMBER"),
    (r"\b1[6-9]\d{8,11}\b", "TIME"),
    (r"TIME \d+ ", "TIME AGO "),
    (r"(TopicId: |topic id )[\w-]{22}", r"\1ID"),
    (r'("logDir":|"log_dirs":\[)"[^"]*"', r'\1"DIRECTORY"'),
    (r"(Valid states are:) [^\\]*", r"\1 …"),
)
"""What differs from run to run, and what it is told as."""

Tool = Callable[..., str]
Alter = Callable[..., None]


class Tools:
    def __init__(self, bootstrap: str, command: list[str], folder: Path, tell: Callable[[str], None]) -> None:
        self.bootstrap, self.folder, self.tell = bootstrap, folder, tell
        self.jvm = KafkaTools(command)
        self.equal: list[tuple[str, str]] = [(bootstrap, "BROKER"), (str(folder), "FOLDER")]
        self.patterns: list[tuple[str, Any]] = list(EQUAL)

    def quietly(self, tool: str, *words: str) -> str:
        """What a step prints that is not told of."""
        return self.jvm.run(tool, "--bootstrap-server", self.bootstrap, *words).text

    def __call__(self, name: str, tool: str, *words: str, to: str = "--bootstrap-server", at: str = "") -> str:
        code, printed = self.jvm.run(tool, to, at or self.bootstrap, *words)
        text = printed.replace("\\", "\\\\").replace("\n", "\\n")  # a line a step
        told = self.made_equal(text)
        if words[0] == "list":  # in any order
            told = "\\n".join(sorted(told.split("\\n")))
        self.tell(f"{name}\t{code}\t{told}")
        return text

    def made_equal(self, text: str) -> str:
        for found, told in self.equal:
            text = text.replace(found, told)
        for pattern, replaced in self.patterns:
            text = re.sub(pattern, replaced, text)
        return text

    def file(self, name: str, content: Any) -> str:
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def close(self) -> None:
        self.jvm.close()


def topics(tool: Tool, tools: Tools) -> None:
    tool("topics create", TOPICS, "--create", "--topic", "t", "--partitions", "2", "--config", "retention.ms=-1")
    tool("topics create again", TOPICS, "--create", "--topic", "t")
    tool("topics create if not exists", TOPICS, "--create", "--topic", "t", "--if-not-exists")
    tool("topics create bad config", TOPICS, "--create", "--topic", "bad", "--config", "retention.ms=soon")
    tool("topics list", TOPICS, "--list", "--exclude-internal")
    tool("topics describe", TOPICS, "--describe", "--topic", "t")
    tool("topics describe none", TOPICS, "--describe", "--topic", "none")
    tool("topics with overrides", TOPICS, "--describe", "--topics-with-overrides", "--exclude-internal")
    tool("topics unavailable", TOPICS, "--describe", "--unavailable-partitions")
    tool("topics at minimum", TOPICS, "--describe", "--at-min-isr-partitions", "--topic", "t")
    tool("topics alter", TOPICS, "--alter", "--topic", "t", "--partitions", "3")
    tool("topics alter down", TOPICS, "--alter", "--topic", "t", "--partitions", "1")
    tool("topics alter none", TOPICS, "--alter", "--topic", "none", "--partitions", "3")
    tool("topics delete none", TOPICS, "--delete", "--topic", "none")


def offsets(tool: Tool, tools: Tools) -> None:
    for when in ("-1", "-2", "-3", "-4", "-5", "earliest", "latest", "max-timestamp", "1", "99999999999999"):
        tool(f"offsets at {when}", OFFSETS, "--topic", "t", "--time", when)
    tool("offsets of a pattern", OFFSETS, "--topic-partitions", "t:0-2,none.*:0")
    tool("offsets of nothing", OFFSETS, "--topic", "none")
    tool("offsets without internal topics", OFFSETS, "--exclude-internal-topics")
    plan = tools.file("records.json", {"partitions": [{"topic": "t", "partition": 0, "offset": 3}], "version": 1})
    tool("records delete", TOOLS + "DeleteRecordsCommand", "--offset-json-file", plan)
    many = [{"topic": "t", "partition": 1, "offset": 99}, {"topic": "none", "partition": 0, "offset": 1}]
    plan = tools.file("records-bad.json", {"partitions": many[:1], "version": 1})
    tool("records delete too many", TOOLS + "DeleteRecordsCommand", "--offset-json-file", plan)
    plan = tools.file("records-all.json", {"partitions": [{"topic": "t", "partition": 2, "offset": -1}], "version": 1})
    tool("records delete all", TOOLS + "DeleteRecordsCommand", "--offset-json-file", plan)
    tool("offsets after deletion", OFFSETS, "--topic", "t", "--time", "-2")


def groups(tool: Tool, tools: Tools) -> None:
    lists(tool)
    descriptions(tool)
    in_use(tool)
    resets(tool)
    deletions(tool)
    shares_and_streams(tool)


def lists(tool: Tool) -> None:
    tool("groups list", GROUPS, "--list")
    tool("groups list consumers", GROUPS, "--list", "--consumer")
    tool("groups list classic", GROUPS, "--list", "--group-type", "classic")
    tool("groups list share", GROUPS, "--list", "--share")
    tool("groups list by protocol", GROUPS, "--list", "--protocol", "consumer")
    tool("consumers list", CONSUMERS, "--list")
    tool("consumers list state", CONSUMERS, "--list", "--state")
    tool("consumers list type", CONSUMERS, "--list", "--type")
    tool("consumers list empty", CONSUMERS, "--list", "--state", "Empty")
    tool("consumers list unknown state", CONSUMERS, "--list", "--state", "Nonsense")
    tool("consumers list classic", CONSUMERS, "--list", "--type", "classic")


def descriptions(tool: Tool) -> None:
    tool("consumers describe", CONSUMERS, "--describe", "--group", "simple")
    tool("consumers describe offsets", CONSUMERS, "--describe", "--group", "simple", "--offsets", "--verbose")
    tool("consumers describe members", CONSUMERS, "--describe", "--group", "simple", "--members", "--verbose")
    tool("consumers describe state", CONSUMERS, "--describe", "--group", "simple", "--state")
    tool("consumers describe none", CONSUMERS, "--describe", "--group", "none")
    tool("consumers describe none members", CONSUMERS, "--describe", "--group", "none", "--members")
    tool("consumers describe none state", CONSUMERS, "--describe", "--group", "none", "--state")
    tool("consumers describe in use", CONSUMERS, "--describe", "--group", "used")
    tool("consumers describe in use members", CONSUMERS, "--describe", "--group", "used", "--members", "--verbose")
    tool("consumers describe in use state", CONSUMERS, "--describe", "--group", "used", "--state", "--verbose")
    tool("consumers describe all", CONSUMERS, "--describe", "--all-groups", "--state")


def in_use(tool: Tool) -> None:
    tool("consumers delete in use", CONSUMERS, "--delete", "--group", "used")
    tool("consumers delete offsets in use", CONSUMERS, "--delete-offsets", "--group", "used", "--topic", "t")


def resets(tool: Tool) -> None:
    def reset(name: str, group: str, *words: str) -> None:
        tool(f"consumers reset {name}", CONSUMERS, "--reset-offsets", "--group", group, *words)

    reset("in use", "used", "--topic", "t", "--to-earliest", "--execute")
    for how in (["--to-earliest"], ["--to-latest"], ["--to-offset", "2"], ["--to-offset", "99"], ["--shift-by", "-1"],
                ["--shift-by", "99"], ["--by-duration", "PT1H"], ["--to-datetime", "2020-01-01T00:00:00.000"],
                ["--to-current"]):  # fmt: skip
        reset(" ".join(how), "simple", "--topic", "t", *how, "--dry-run")
    reset("export", "simple", "--topic", "t:0", "--to-offset", "2", "--export", "--dry-run")
    reset("execute", "simple", "--all-topics", "--to-offset", "1", "--execute")
    reset("a new group", "made", "--topic", "t", "--to-latest", "--execute")
    reset("no topic", "simple", "--topic", "none", "--to-latest", "--execute")
    reset("no partition", "simple", "--topic", "t:9", "--to-latest", "--execute")
    tool("consumers describe made", CONSUMERS, "--describe", "--group", "made")
    tool("consumers validate regex", CONSUMERS, "--validate-regex", "t.*")


def deletions(tool: Tool) -> None:
    tool("consumers delete offsets", CONSUMERS, "--delete-offsets", "--group", "simple", "--topic", "t:0")
    tool("consumers delete offsets of no topic", CONSUMERS, "--delete-offsets", "--group", "simple", "--topic", "none")
    tool("consumers delete offsets of nobody", CONSUMERS, "--delete-offsets", "--group", "none", "--topic", "t")
    tool("consumers delete", CONSUMERS, "--delete", "--group", "simple", "--group", "made")
    tool("consumers delete again", CONSUMERS, "--delete", "--group", "simple")
    tool("consumers delete pattern", CONSUMERS, "--delete", "--all-groups")
    tool("groups list after", GROUPS, "--list")


def shares_and_streams(tool: Tool) -> None:
    tool("shares list", SHARES, "--list", "--state")
    tool("shares describe", SHARES, "--describe", "--group", "shared")
    tool("shares describe members", SHARES, "--describe", "--group", "shared", "--members", "--verbose")
    tool("shares describe state", SHARES, "--describe", "--group", "shared", "--state", "--verbose")
    tool("shares describe none", SHARES, "--describe", "--group", "none")
    tool("shares delete none", SHARES, "--delete", "--group", "none")
    tool("shares delete offsets of nobody", SHARES, "--delete-offsets", "--group", "none", "--topic", "t")
    tool(
        "shares reset none", SHARES, "--reset-offsets", "--group", "none", "--topic", "t", "--to-earliest", "--execute"
    )
    tool("shares describe a consumer group", SHARES, "--describe", "--group", "used")
    tool("consumers describe a share group", CONSUMERS, "--describe", "--group", "shared")
    tool("consumers delete a share group", CONSUMERS, "--delete", "--group", "shared")
    tool("streams list", STREAMS, "--list")
    tool("streams describe none", STREAMS, "--describe", "--group", "none")


def transactions(tool: Tool, tools: Tools) -> None:
    tool("transactions list", TRANSACTIONS, "list")
    tool("transactions list by duration", TRANSACTIONS, "list", "--duration-filter", "1000000")
    tool("transactions list by pattern", TRANSACTIONS, "list", "--transactional-id-pattern", "op.*")
    tool("transactions list by bad pattern", TRANSACTIONS, "list", "--transactional-id-pattern", "(")
    tool("transactions describe", TRANSACTIONS, "describe", "--transactional-id", "open")
    tool("transactions describe none", TRANSACTIONS, "describe", "--transactional-id", "none")
    tool("transactions producers", TRANSACTIONS, "describe-producers", "--topic", "x", "--partition", "0")

    tool("transactions hanging", TRANSACTIONS, "find-hanging", "--topic", "x", "--max-transaction-timeout", "0")
    tool("transactions hanging on broker", TRANSACTIONS, "find-hanging", "--broker-id", "1")
    tool("transactions hanging of nothing", TRANSACTIONS, "find-hanging", "--topic", "none")
    tool("transactions abort", TRANSACTIONS, "abort", "--topic", "x", "--partition", "0", "--start-offset", "0")
    tool("transactions abort again", TRANSACTIONS, "abort", "--topic", "x", "--partition", "0", "--start-offset", "0")
    tool("transactions producers after", TRANSACTIONS, "describe-producers", "--topic", "x", "--partition", "0")
    tool("transactions terminate", TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", "open")
    tool("transactions terminate kebab", TRANSACTIONS, "force-terminate", "--transactional-id", "open")
    tool("transactions list at last", TRANSACTIONS, "list")


def configs(tool: Tool, tools: Tools) -> None:
    def alter(name: str, kind: str, entity: str | None, *words: str) -> None:
        who = ["--entity-default"] if entity is None else ["--entity-name", entity]
        tool(f"configs {name}", CONFIGS, "--entity-type", kind, *who, *words)

    topics_and_brokers(alter)
    quotas(alter)
    quotas_of_two(tool)
    passwords_and_groups(alter)
    metrics(tool, alter)


def topics_and_brokers(alter: Alter) -> None:
    alter("topic", "topics", "t", "--describe")
    alter("topic all", "topics", "t", "--describe", "--all")
    alter("topic none", "topics", "none", "--describe")
    alter("topic bad", "topics", "t", "--alter", "--add-config", "no.such=1")
    alter("topic delete unset", "topics", "t", "--alter", "--delete-config", "flush.ms")
    alter("topic list", "topics", "t", "--alter", "--add-config", "cleanup.policy=[compact,delete]")
    alter("topic now", "topics", "t", "--describe")
    alter("broker default", "brokers", None, "--describe")
    alter("broker default set", "brokers", None, "--alter", "--add-config", "log.cleaner.backoff.ms=20000")
    alter("broker default now", "brokers", None, "--describe")
    alter("broker", "brokers", "1", "--describe")
    alter("broker read only", "brokers", "1", "--alter", "--add-config", "log.dirs=/x")
    alter("broker default unset", "brokers", None, "--alter", "--delete-config", "log.cleaner.backoff.ms")
    alter("broker none", "brokers", "9", "--describe")
    alter("loggers bad", "broker-loggers", "1", "--alter", "--add-config", "root=LOUD")


def quotas(alter: Alter) -> None:
    alter("user default", "users", None, "--alter", "--add-config", "consumer_byte_rate=1000")
    alter("user default now", "users", None, "--describe")
    alter("client", "clients", "c", "--alter", "--add-config", "producer_byte_rate=1000,request_percentage=50")
    alter("client now", "clients", "c", "--describe")
    alter("client bad", "clients", "c", "--alter", "--add-config", "speed=1000")
    alter("client delete", "clients", "c", "--alter", "--delete-config", "producer_byte_rate")
    alter("client after", "clients", "c", "--describe")
    alter("ip", "ips", "127.0.0.1", "--alter", "--add-config", "connection_creation_rate=10")
    alter("ip now", "ips", "127.0.0.1", "--describe")


def quotas_of_two(tool: Tool) -> None:
    who = ["--entity-type", "users", "--entity-name", "ann", "--entity-type", "clients", "--entity-name", "c"]
    tool("configs user and client", CONFIGS, "--alter", *who, "--add-config", "producer_byte_rate=7")
    tool("configs users and clients", CONFIGS, "--describe", "--entity-type", "users", "--entity-type", "clients")


def passwords_and_groups(alter: Alter) -> None:
    alter("scram", "users", "ann", "--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=x]")
    alter("scram few", "users", "ann", "--alter", "--add-config", "SCRAM-SHA-512=[iterations=1,password=x]")
    alter("scram now", "users", "ann", "--describe")
    alter("scram default", "users", None, "--alter", "--add-config", "SCRAM-SHA-512=[password=x]")
    alter("group", "groups", "used", "--alter", "--add-config", "consumer.session.timeout.ms=46000")
    alter("group now", "groups", "used", "--describe")
    alter("group bad", "groups", "used", "--alter", "--add-config", "consumer.session.timeout.ms=1")


def metrics(tool: Tool, alter: Alter) -> None:
    alter("metrics none", "client-metrics", "m", "--describe")
    words = ["--metrics", "org.apache.kafka.", "--interval", "1000", "--match", "client_id=c"]
    tool("metrics alter", METRICS, "--alter", "--name", "m", *words)
    tool("metrics list", METRICS, "--list")
    tool("metrics describe", METRICS, "--describe", "--name", "m")
    tool("metrics describe none", METRICS, "--describe", "--name", "none")
    tool("metrics delete", METRICS, "--delete", "--name", "m")
    tool("metrics bad", METRICS, "--alter", "--name", "m", "--interval", "-5")
    tool("metrics bad match", METRICS, "--alter", "--name", "m", "--match", "what=c")


def cluster(tool: Tool, tools: Tools) -> None:
    features(tool)
    elections(tool, tools)
    reassignments(tool, tools)
    directories(tool, tools)
    streams_reset(tool)


def features(tool: Tool) -> None:
    tool("features describe", FEATURES, "describe")
    tool("features upgrade to the same", FEATURES, "upgrade", "--feature", "transaction.version=2")
    tool("features upgrade beyond", FEATURES, "upgrade", "--feature", "transaction.version=9")
    tool("features upgrade unknown", FEATURES, "upgrade", "--feature", "no.such=1")
    tool("features downgrade", FEATURES, "downgrade", "--feature", "transaction.version=1", "--dry-run")
    tool("features downgrade up", FEATURES, "downgrade", "--feature", "transaction.version=2")
    tool("features disable", FEATURES, "disable", "--feature", "share.version", "--dry-run")
    tool("features dependencies", FEATURES, "feature-dependencies", "--feature", "transaction.version=2")


def elections(tool: Tool, tools: Tools) -> None:
    elect = TOOLS + "LeaderElectionCommand"
    tool("elect all", elect, "--election-type", "preferred", "--all-topic-partitions")
    tool("elect none", elect, "--election-type", "preferred", "--topic", "none", "--partition", "0")
    plan = tools.file("elect.json", {"partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 9}]})
    tool("elect some", elect, "--election-type", "unclean", "--path-to-json-file", plan)


def reassignments(tool: Tool, tools: Tools) -> None:
    plan = tools.file("move.json", {"topics": [{"topic": "t"}], "version": 1})
    tool("reassign generate", REASSIGN, "--topics-to-move-json-file", plan, "--broker-list", "1", "--generate")
    rows = [{"topic": "t", "partition": 0, "replicas": [9]}]
    bad = tools.file("bad.json", {"version": 1, "partitions": rows})
    tool("reassign to nobody", REASSIGN, "--reassignment-json-file", bad, "--execute")
    rows = [{"topic": "none", "partition": 0, "replicas": [1]}]
    bad = tools.file("bad-topic.json", {"version": 1, "partitions": rows})
    tool("reassign no topic", REASSIGN, "--reassignment-json-file", bad, "--execute")
    rows = [{"topic": "t", "partition": 0, "replicas": [1]}]
    good = tools.file("good.json", {"version": 1, "partitions": rows})
    tool("reassign", REASSIGN, "--reassignment-json-file", good, "--execute", "--throttle", "1000000")
    tool("reassign verify", REASSIGN, "--reassignment-json-file", good, "--verify")
    tool("reassign cancel", REASSIGN, "--reassignment-json-file", good, "--cancel")
    tool("reassign list", REASSIGN, "--list")
    rows = [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/none"]}]
    bad = tools.file("bad-dir.json", {"version": 1, "partitions": rows})
    tool("reassign to no directory", REASSIGN, "--reassignment-json-file", bad, "--execute", "--timeout", "1000")


def directories(tool: Tool, tools: Tools) -> None:
    tool("log dirs", TOOLS + "LogDirsCommand", "--describe", "--topic-list", "t", "--broker-list", "1")
    tool("log dirs of nobody", TOOLS + "LogDirsCommand", "--describe", "--broker-list", "9")
    tool("log dirs of no topic", TOOLS + "LogDirsCommand", "--describe", "--topic-list", "none")
    tool(
        "tokens", TOOLS + "DelegationTokenCommand", "--describe", "--command-config", tools.file("none.properties", "")
    )
    tool("acls list", ACLS, "--list")
    tool("quorum", TOOLS + "MetadataQuorumCommand", "describe", "--status")


def streams_reset(tool: Tool) -> None:
    tool("streams reset", TOOLS + "StreamsResetter", "--application-id", "app", "--input-topics", "t", "--force")
    words = ["--application-id", "app", "--input-topics", "t", "--dry-run", "--to-offset", "1"]
    tool("streams reset dry", TOOLS + "StreamsResetter", *words)
    tool("streams reset no topic", TOOLS + "StreamsResetter", "--application-id", "app", "--input-topics", "none")


PARTS = (topics, offsets, groups, transactions, configs, cluster)


def run(bootstrap: str, command: list[str], tell: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tools = Tools(bootstrap, command, Path(scratch), tell)
        do = Steps(bootstrap, lambda line: None)
        try:
            topics(tools, tools)
            used = prepared(do)
            for part in PARTS[1:]:
                do.beat("alive", "used", *used)
                if part is transactions:
                    hanging(do, tools)
                part(tools, tools)
        finally:
            tools.close()


def prepared(do: Steps) -> tuple[int, str]:
    """Data, and groups of every kind; gives the generation and id of the one who is in `used`."""
    for name in ("t", "x"):
        do.create(name, 3)
    find_coordinators(do)
    who = do.init("", None)
    for partition in range(3):
        do.produce("", who, 0, topic="t", partition=partition, count=5)
    for partition in range(2):
        do.commit("", "simple", topic="t", partition=partition, offset=2)
    member = do.join("", "used", do.join("", "used", session_ms=600_000).member_id, session_ms=600_000)
    assigned = b"\0\1\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0"
    do.sync("", "used", member.generation_id, member.member_id, assigned)
    do.commit("", "used", member.generation_id, member.member_id, topic="t", partition=0, offset=1)
    do.share_beat("", "shared", "AAAAAAAAAAAAAAAAAAAAAQ", 0, "t")
    return member.generation_id, member.member_id


def hanging(do: Steps, tools: Tools) -> None:
    """One transaction that is open, and one that its coordinator forgot."""
    who = do.init("", "open", timeout_ms=600_000)
    do.produce("", who, 0, transactional_id="open", topic="x", partition=1)
    do.init("", "op-idle")
    tools.equal += [(str(who[0]), "PRODUCER")] if who[0] > 9 else []
    who = do.init("", "lost")
    do.produce("", who, 0, transactional_id="lost", topic="x")
