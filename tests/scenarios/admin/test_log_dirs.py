"""Logs that move between directories while they are written, read, deleted; and over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.broker import moves
from logkernel.requests import configs, placement
from logkernel.vocabulary import TopicPartition

T0 = TopicPartition("t", 0)


def where(log: Any) -> dict[str, list[tuple[str, int, bool]]]:
    """Folder → (partition, offset lag, is it a copy) of what lies there."""
    response = log.request(placement.DescribeLogDirsRequest())
    assert response.error_code == 0
    return {
        Path(row.log_dir).name: sorted(
            (f"{topic.name}-{one.partition_index}", one.offset_lag, one.is_future_key)
            for topic in row.topics
            for one in topic.partitions
        )
        for row in response.results
    }


def move(log: Any, path: Path | str, topic: str = "t", partition: int = 0) -> int:
    topics = [placement.AlterReplicaLogDirTopic(topic, [partition])]
    request = placement.AlterReplicaLogDirsRequest([placement.AlterReplicaLogDir(str(path), topics)])
    (row,) = log.request(request).results
    (one,) = row.partitions
    return one.error_code  # type: ignore[no-any-return]


def home(log: Any) -> str:
    return Path(log.broker.logs.directories.directory_of(T0).path).name


def run(log: Any, steps: int = 10_000) -> None:
    """Step until no move is under way."""
    clock = log.broker.runtime.clock
    now = clock.mono_ms()
    for number in range(steps):
        if not log.broker.moves.active:
            return
        log.broker.runtime.timers.run(now + number)
    pytest.fail("the move does not end")


def left(folder: Path) -> list[str]:
    """What lies there of the topic, but for what is going already."""
    names = [path.name for path in folder.iterdir()]
    return [name for name in names if name.startswith("t-") and not name.endswith("-delete")]


@pytest.fixture
def log(start: Any) -> Any:
    found = start("node.id=1", "log.segment.bytes=1048576")
    found.create_topic("t")
    return found


def other(log: Any, tmp_path: Path) -> Path:
    return tmp_path / ("two" if home(log) == "one" else "one")


def test_a_log_moves_while_it_is_written(log: Any, tmp_path: Path, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "CHUNK_BYTES", 100)
    for number in range(200):
        log.append("t", b"%d" % number * 200)
    target = other(log, tmp_path)
    assert move(log, target) == 0
    assert move(log, target) == 0, "asked again, it goes on"
    log.broker.runtime.timers.run(log.broker.runtime.clock.mono_ms() + 1)
    found = where(log)
    lag = next(lag for _, lag, future in found[target.name] if future)
    assert 0 < lag <= 200
    assert [name for name in target.iterdir() if name.name.startswith("t-0.") and name.name.endswith("-future")]
    seen = 200
    while log.broker.moves.active:
        assert log.append("t", b"%d" % seen).offset == seen
        seen += 1
        assert seen < 10_000
        log.broker.runtime.timers.run(log.broker.runtime.clock.mono_ms() + seen)
    assert where(log)[target.name] == [("t-0", 0, False)]
    assert home(log) == target.name
    assert [record.offset for record in log.read("t")] == list(range(seen))
    again = start("node.id=1")
    assert home(again) == target.name
    assert [record.offset for record in again.read("t")] == list(range(seen))
    assert again.append("t", b"next").offset == seen


def test_what_is_described(log: Any, tmp_path: Path) -> None:
    log.append("t", b"x" * 1000)
    response = log.request(placement.DescribeLogDirsRequest())
    assert [row.log_dir for row in response.results] == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert all(0 <= row.usable_bytes <= row.total_bytes for row in response.results)
    (size,) = (one.partition_size for row in response.results for topic in row.topics for one in topic.partitions)
    assert size > 1000
    chosen = [placement.DescribableLogDirTopic("none", [0])]
    assert all(not row.topics for row in log.request(placement.DescribeLogDirsRequest(chosen)).results)


def test_moves_that_are_refused(log: Any, tmp_path: Path) -> None:
    assert move(log, "/no/such/folder") == e.LogDirNotFound.code
    assert move(log, other(log, tmp_path), "none") == e.UnknownTopicOrPartition.code
    assert move(log, "/no/such/folder", "none") == e.UnknownTopicOrPartition.code, "as Kafka 4.3 has it"
    assert move(log, other(log, tmp_path), partition=9) == e.UnknownTopicOrPartition.code
    assert move(log, tmp_path / home(log)) == 0, "it is there already"
    assert log.broker.moves.active == {}


def test_a_move_back_gives_the_move_up(log: Any, tmp_path: Path) -> None:
    log.append("t", b"x")
    own, target = tmp_path / home(log), other(log, tmp_path)
    assert move(log, target) == 0
    assert move(log, own) == 0
    assert log.broker.moves.active == {}
    assert where(log) == {own.name: [("t-0", 0, False)], target.name: []}
    assert left(target) == []


def test_a_deleted_topic_ends_its_move(log: Any, tmp_path: Path) -> None:
    log.append("t", b"x")
    target = other(log, tmp_path)
    assert move(log, target) == 0
    log.delete_topic("t")
    run(log)
    assert left(tmp_path / "one") == left(tmp_path / "two") == []
    log.create_topic("t")
    assert list(log.read("t")) == []


def test_a_move_goes_on_after_a_restart(log: Any, tmp_path: Path, start: Any) -> None:
    for number in range(20):
        log.append("t", b"%d" % number)
    target = other(log, tmp_path)
    assert move(log, target) == 0
    again = start("node.id=1")
    assert again.broker.moves.active
    run(again)
    assert home(again) == target.name
    assert [record.offset for record in again.read("t")] == list(range(20))


def test_a_target_that_fails_leaves_the_log_where_it_is(
    log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("t", b"x")
    own, target = home(log), other(log, tmp_path)
    assert move(log, target) == 0
    (active,) = log.broker.moves.active.values()

    def broken(*_: Any) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(active.future), "step", broken)
    run(log)
    assert home(log) == own
    assert log.append("t", b"y").offset == 1
    results = {Path(row.log_dir).name: row for row in log.request(placement.DescribeLogDirsRequest()).results}
    assert results[target.name].error_code == e.KafkaStorageError.code
    assert results[own].error_code == 0
    assert move(log, target) == e.KafkaStorageError.code


def test_a_full_target_stays_in_use(log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append("t", b"x")
    own, target = home(log), other(log, tmp_path)
    assert move(log, target) == 0
    (active,) = log.broker.moves.active.values()

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(active.future), "step", full)
    run(log)
    assert (home(log), log.broker.moves.active) == (own, {})
    assert all(row.error_code == 0 for row in log.request(placement.DescribeLogDirsRequest()).results)


def test_the_rate_is_kept(log: Any, tmp_path: Path) -> None:
    for _ in range(50):
        log.append("t", b"x" * 10_000)
    row = configs.IncrementalAlterConfigsAlterableConfig(moves.RATE, 0, "100000")
    resource = configs.IncrementalAlterConfigsAlterConfigsResource(4, "", [row])
    assert log.request(configs.IncrementalAlterConfigsRequest([resource])).responses[0].error_code == 0
    assert move(log, other(log, tmp_path)) == 0
    broker = log.broker
    now = [broker.runtime.clock.mono_ms()]
    broker.runtime.clock.mono_ms = lambda: now[0]
    begun = now[0]
    while broker.moves.active:
        now[0] += 50
        broker.runtime.timers.run(now[0])
        copied = sum(one.copied_bytes for one in broker.moves.active.values())
        assert copied <= 100 * (now[0] - begun) + 20_000
        assert now[0] - begun < 60_000
    assert now[0] - begun >= 4_500, "half a megabyte at 100 KB a second"
