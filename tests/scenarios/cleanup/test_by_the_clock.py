"""What a broker cleans unasked, and what it leaves alone: its settings, under a clock that the test turns."""

from __future__ import annotations

import time

import logkernel
from logkernel.vocabulary import TopicPartition

NAME = TopicPartition("t", 0)
DAY_MS = 86_400_000


class Turned:
    """The clocks of an embedded log, turned by hand."""

    def __init__(self, log) -> None:
        self.log = log
        self.now_ms = 0
        clock = log.broker.runtime.clock
        self.wall, self.mono = clock.wall_ms(), clock.mono_ms()
        clock.wall_ms = lambda: self.wall + self.now_ms
        clock.mono_ms = lambda: self.mono + self.now_ms

    def pass_ms(self, ms: int, step_ms: int = 1000) -> None:
        end = self.now_ms + ms
        while self.now_ms < end:
            self.now_ms = min(end, self.now_ms + step_ms)
            self.log.step()


def names(tmp_path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "t-0").iterdir() if ".log" in path.name)


def until(holds) -> None:
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_retention_is_looked_at_every_interval_and_files_go_after_their_delay(tmp_path):
    with logkernel.open(
        tmp_path, log_retention_ms=DAY_MS, log_retention_check_interval_ms=300_000, log_cleaner_enable=False
    ) as log:
        log.create_topic("t", 1, file_delete_delay_ms=60_000)
        turned = Turned(log)
        log.append("t", b"old", timestamp_ms=turned.wall - DAY_MS - 1)
        log.broker.replicas.get(NAME).log.roll(turned.wall)
        log.append("t", b"young", timestamp_ms=turned.wall)
        turned.pass_ms(299_000)
        assert log.start_offset("t") == 0
        turned.pass_ms(2_000)
        assert log.start_offset("t") == 1
        assert names(tmp_path) == [f"{0:020d}.log.deleted", f"{1:020d}.log"]
        turned.pass_ms(58_000)
        assert names(tmp_path) == [f"{0:020d}.log.deleted", f"{1:020d}.log"]
        turned.pass_ms(2_000)  # no look comes before that: the delay itself is over
        until(lambda: names(tmp_path) == [f"{1:020d}.log"])
        turned.pass_ms(DAY_MS, step_ms=100_000)  # the active segment is too old, too
        assert (log.start_offset("t"), log.end_offset("t")) == (2, 2)
        assert f"{2:020d}.log" in names(tmp_path)


def test_log_cleaner_enable_is_honoured(tmp_path):
    """Off: nothing is compacted by the clock, retention goes on, and whoever asks by name gets it."""
    for enabled in (False, True):
        folder = tmp_path / str(enabled)
        with logkernel.open(folder, log_cleaner_enable=enabled, log_cleaner_backoff_ms=1000) as log:
            log.create_topic("t", 1, cleanup_policy="compact")
            turned = Turned(log)
            replica = log.broker.replicas.get(NAME)
            for _ in range(3):
                log.append("t", b"v", key=b"k")
            replica.log.roll(turned.wall)
            turned.pass_ms(10_000)
            if enabled:

                def compacted(log=log, replica=replica):
                    log.step()
                    return replica.log.clean_offset == 3

                until(compacted)
            else:
                assert replica.log.clean_offset is None
                assert len(log.compact("t")) == 1
            assert [record.offset for record in log.read("t")] == [2]
