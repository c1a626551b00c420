"""What the control socket can be asked. Each command runs in the broker's thread and answers once, now or later."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import asdict

from logkernel.broker.control_socket import Reply
from logkernel.broker.governance.missing_plugins import find_missing
from logkernel.errors import InvalidRequest, LogkernelError, UnknownTopicOrPartition
from logkernel.vocabulary import READ_COMMITTED, READ_UNCOMMITTED, CleanupResult, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.storage.directory import DataDirectory

log = logging.getLogger("logkernel.control")

Done = Callable[[Any], None]
"""Takes a command's result, or the exception that says why there is none."""
Command = Callable[["Broker", Mapping[str, Any], Done], None]


def handle(broker: Broker, command: str, arguments: Mapping[str, Any], reply: Reply) -> None:
    """Carry out `command`; whatever goes wrong is an answer."""

    def done(outcome: Any) -> None:
        reply(_failure(outcome) if isinstance(outcome, BaseException) else {"ok": True, "result": outcome})

    known = COMMANDS.get(command)
    if known is None:
        done(InvalidRequest(f"there is no command {command!r}; use one of {', '.join(COMMANDS)}"))
        return
    try:
        known(broker, arguments, done)
    except Exception as error:
        if not isinstance(error, (LogkernelError, OSError)):
            log.exception("command failed: command=%s", command)
        done(error)
    broker.turn.end()


def _failure(error: BaseException) -> dict[str, Any]:
    return {"ok": False, "error": type(error).__name__, "message": str(error)}


# ---------------------------------------------------------------- the commands


def status(broker: Broker, arguments: Mapping[str, Any], done: Done) -> None:
    """Return the broker's identity, its directories and its faults."""
    from importlib.metadata import version

    directories, kernel = broker.logs.directories, broker.runtime.kernel
    settings = {topic: broker.metadata.topic_settings(topic) for topic in broker.cluster.topics}
    done(
        {
            "version": version("logkernel"),
            "pid": os.getpid(),
            "nodeId": broker.runtime.node_id,
            "clusterId": broker.cluster.id,
            "topics": len(broker.cluster.topics),
            "partitions": len(broker.replicas.all()),
            "led": len(broker.replicas.led),
            "directories": [
                {
                    "path": directory.path,
                    "online": directory.failure is None,
                    "failure": None if directory.failure is None else str(directory.failure),
                    "partitions": len(directory.logs),
                    "usableBytes": _usable(directory),
                }
                for directory in directories.directories
            ],
            "offline": sorted(
                f"{topic}-{index}"
                for topic, known in broker.cluster.topics.items()
                for index in range(len(known.partitions))
                if broker.replicas.is_offline(topic, index)
            ),
            "unreadable": {str(name): str(error) for name, error in sorted(directories.unreadable.items())},
            "uncleanable": {str(name): why for name, why in sorted(broker.cleaner.uncleanable.items())},
            "plugins": [
                {"plugin": fault.origin.plugin, "distribution": fault.origin.distribution,
                 "file": fault.origin.file, "in": fault.place, "times": fault.count, "error": fault.error}
                for fault in kernel.faults
            ],
            "missing": [
                {"kind": each.kind, "name": each.name, "topics": each.topics, "more": each.more,
                 "consequence": each.consequence}
                for each in find_missing(kernel, settings)
            ],
            "cut": [
                {"partition": str(name), "path": damage.path, "position": damage.position,
                 "lostBytes": damage.lost_bytes, "reason": damage.reason}
                for name, each in sorted(directories.logs.items()) for damage in each.damages
            ],
        }
    )  # fmt: skip


def _usable(directory: DataDirectory) -> int | None:
    try:
        return None if directory.failure is not None else directory.space()[1]
    except OSError:
        return None


def compact(broker: Broker, arguments: Mapping[str, Any], done: Done) -> None:
    """Compact a topic now; answers when every partition is through."""
    topic = _topic(broker, arguments)
    broker.cleaner.compact(topic, lambda results: done(_rows(results)))


def expire(broker: Broker, arguments: Mapping[str, Any], done: Done) -> None:
    """Apply a topic's retention now; answer when the segments are dropped durably."""
    topic = _topic(broker, arguments)
    broker.retention.expire(topic, lambda results: done(_rows(results)))


def bounds(broker: Broker, arguments: Mapping[str, Any], done: Done) -> None:
    """Return the readable bounds of a partition, for tools that read its segment files."""
    index = arguments.get("partition")
    if not isinstance(index, int):
        raise InvalidRequest("partition is missing")
    replica = broker.replicas.get(TopicPartition(_topic(broker, arguments), index))
    leader = replica.leader
    done(
        {
            "logStart": replica.log.start_offset,
            "highWatermark": leader.readable_end(READ_UNCOMMITTED),
            "lastStable": leader.readable_end(READ_COMMITTED),
        }
    )


def _rows(results: Sequence[CleanupResult] | BaseException) -> list[dict[str, Any]] | BaseException:
    """Of what cleanup did to each partition: topic, partition, policy, before, after, log_start_offset."""
    return results if isinstance(results, BaseException) else [asdict(result) for result in results]


def _topic(broker: Broker, arguments: Mapping[str, Any]) -> str:
    topic = arguments.get("topic")
    if not isinstance(topic, str):
        raise InvalidRequest("topic is missing")
    if topic not in broker.cluster.topics:
        raise UnknownTopicOrPartition(f"there is no topic {topic!r}; check the name")
    return topic


COMMANDS: Mapping[str, Command] = {"status": status, "topic.compact": compact, "topic.expire": expire,
                                         "partition.bounds": bounds}  # fmt: skip
