"""Commands for topics, their settings and offsets."""

from __future__ import annotations

from shells import Shell, committed

from logkernel.client.admin.topics import NewTopic


def test_topics_are_created_listed_and_described(shell: Shell) -> None:
    assert shell("topic create a b -p 2 -c retention.ms=5000") == "Created topic a.\nCreated topic b.\n"
    assert shell("topic list -q") == "a\nb\n"
    assert [row[:2] for row in shell.table("topic list")] == [["a", "2"], ["b", "2"]]
    assert [(row["topic"], row["partitions"]) for row in shell.rows("topic list")] == [("a", 2), ("b", 2)]
    head, first, _ = shell("topic describe a").splitlines()
    assert [part.split(": ")[0] for part in head.split("\t")] == [
        "Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs"
    ]  # fmt: skip
    assert head.endswith("\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=5000")
    assert first == "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert shell("topic alter a -p 3 -c flush.ms=7 --unset retention.ms") == "Altered topic a.\n"
    (found,) = shell.rows("topic describe a")
    assert (found["partitionCount"], found["configs"]) == (3, {"flush.ms": "7"})
    assert found["partitions"][2] == {
        "partition": 2, "leader": 1, "leaderEpoch": 0, "replicas": [1], "isr": [1], "elr": [], "lastKnownElr": [],
        "offline": [], "state": "ok", "followers": [],
    }  # fmt: skip
    assert shell("topic delete a b") == "Deleted topic a.\nDeleted topic b.\n"
    assert shell("topic describe") == ""


def test_what_fails_of_topics_is_said_and_ends_with_1(shell: Shell) -> None:
    shell("topic create a")
    assert shell("topic create a b", 1) == "Created topic b.\n"
    assert "a: TopicAlreadyExists" in shell.error
    assert shell("topic create a c --if-not-exists") == "Created topic c.\n"
    assert shell("topic create d --dry-run") == "Topic d can be created.\n"
    assert shell("topic create x -c burn=1", 1) == ""
    assert "InvalidConfig" in shell.error
    assert len(shell("topic describe a nope", 1).splitlines()) == 2
    assert "nope: UnknownTopicOrPartition" in shell.error
    assert shell("topic delete nope --if-exists") == ""
    shell("topic delete nope", 1)
    shell("topic alter nope -p 3", 1)


def test_records_are_trimmed(shell: Shell) -> None:
    shell("topic create a -p 2")
    for index in (0, 1):
        for _ in range(5):
            shell.log.append("a", b"v", partition=index)
    assert shell.table("topic trim a:1 --before 3") == [["a", "1", "3"]]
    assert shell.rows("topic trim a --before end") == [
        {"topic": "a", "partition": index, "logStartOffset": 5} for index in (0, 1)
    ]


def test_settings_are_set_listed_and_unset(shell: Shell) -> None:
    shell("topic create a")
    shell("config set topic a retention.ms=1 cleanup.policy=compact")
    shell("config set topic a cleanup.policy=delete --append")
    assert shell("config get topic a retention.ms cleanup.policy") == "1\ncompact,delete\n"
    assert [row[0] for row in shell.table("config list topic a")] == ["cleanup.policy", "retention.ms"]
    assert "flush.ms" in [row["name"] for row in shell.rows("config list topic a --all")]
    shell("config set topic a cleanup.policy=compact --subtract")
    shell("config unset topic a retention.ms")
    assert shell("config get topic a retention.ms cleanup.policy") == "604800000\ndelete\n"
    shell("config set topic a retention.ms=9 --dry-run")
    assert shell.rows("config get topic a retention.ms")[0]["value"] == "604800000"
    shell("config set broker default log.cleaner.backoff.ms=777")
    assert shell("config get broker 1 log.cleaner.backoff.ms") == "777\n"
    assert ["topic", "a"] in shell.table("config list")
    shell("config get topic a nothing", 2)
    shell("config set topic a retention.ms=soon", 1)
    shell("config get topic nope retention.ms", 1)


def test_offsets_are_listed_by_place_and_time(shell: Shell) -> None:
    committed(shell, "g", "a")
    assert shell.table("offsets a") == [["a", "0", "0", "5"]]
    assert shell.rows("offsets a:0 --at 1002 --at latest --at 9999") == [
        {"topic": "a", "partition": 0, "offsets": {"1002": 2, "latest": 5, "9999": None}}
    ]
    assert shell.table("offsets a --at max-timestamp --at 9999") == [["a", "0", "4", "-"]]
    shell("offsets a --at soon", 2)
    shell("offsets nope", 1)


def test_many_topics_in_one_go(shell: Shell) -> None:
    """More partitions than one answer of DescribeTopicPartitions holds."""
    admin = shell.log.admin()
    admin.create_topics([NewTopic(f"t{number}", 700) for number in range(4)])
    assert [len(row["partitions"]) for row in shell.rows("topic describe")] == [700] * 4
