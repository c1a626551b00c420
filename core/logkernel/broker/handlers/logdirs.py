"""DescribeLogDirs and AlterReplicaLogDirs: the logs in each of `log.dirs`, and moving them."""

from __future__ import annotations

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import KafkaError, KafkaStorageError, LogDirNotFound
from logkernel.requests.placement import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from logkernel.storage.directory import DataDirectory
from logkernel.storage.log import Log
from logkernel.vocabulary import TopicPartition

Wanted = set[TopicPartition] | None


def describe_log_dirs(
    ctx: HandlerContext, request: DescribeLogDirsRequest, context: RequestContext, answer: Answer
) -> None:
    """Every directory, with those of its logs that are asked for (null: all)."""
    wanted: Wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(row.topic, index) for row in request.topics for index in row.partitions}
    directories = ctx.logs.directories.directories
    answer(DescribeLogDirsResponse(results=[_described(ctx, one, wanted) for one in directories]))


def _described(ctx: HandlerContext, directory: DataDirectory, wanted: Wanted) -> DescribeLogDirsResult:
    row = DescribeLogDirsResult(log_dir=ctx.logs.path_of(directory))
    try:
        directory.check()
        row.total_bytes, row.usable_bytes = directory.space()
    except (KafkaStorageError, OSError):
        row.error_code = KafkaStorageError.code
        return row
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for name, each in directory.logs.items():
        if wanted is None or name in wanted:
            replica = ctx.replicas.find(name)
            lag = 0 if replica is None else max(0, replica.high_watermark - each.end_offset)
            topics.setdefault(name.topic, []).append(_partition(name, each, lag))
    for name, each in directory.futures.items():
        move = ctx.moves.active.get(name)
        if move is not None and (wanted is None or name in wanted):
            topics.setdefault(name.topic, []).append(_partition(name, each, move.future.lag, future=True))
    row.topics = [DescribeLogDirsTopic(topic, partitions) for topic, partitions in topics.items()]
    return row


def _partition(name: TopicPartition, each: Log, lag: int, *, future: bool = False) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(name.partition, each.size_bytes, lag, future)


def alter_replica_log_dirs(
    ctx: HandlerContext, request: AlterReplicaLogDirsRequest, context: RequestContext, answer: Answer
) -> None:
    """Handle each partition on its own. The answer comes when a move begins; DescribeLogDirs shows its progress."""
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for asked in request.dirs:
        for topic in asked.topics:
            rows = topics.setdefault(topic.name, [])
            for partition in topic.partitions:
                name = TopicPartition(topic.name, partition)
                rows.append(AlterReplicaLogDirPartitionResult(partition, _move(ctx, name, asked.path)))
    answer(AlterReplicaLogDirsResponse(results=[AlterReplicaLogDirTopicResult(*item) for item in topics.items()]))


def _move(ctx: HandlerContext, name: TopicPartition, path: str) -> int:
    try:
        ctx.replicas.held(name)  # that there is none is told first
        for directory in ctx.logs.directories.directories:
            if path.rstrip("/") in (directory.path, ctx.logs.path_of(directory)):
                directory.check()
                ctx.moves.start(name, directory)
                return 0
        raise LogDirNotFound(f"{path} is not one of log.dirs; use one of them")
    except KafkaError as error:
        return error.code


HANDLERS: Handlers = dict(
    [
        on(DescribeLogDirsRequest, describe_log_dirs),
        on(AlterReplicaLogDirsRequest, alter_replica_log_dirs),
    ]
)
