"""Every cell of docs/durability.md: a broker under a seed's workload loses its process, or the whole machine.

`sent` is every record that was handed in, in order; `acked` how many of them were acknowledged, and when. What is found
after the restart must be a prefix of `sent`; how long a prefix is what each cell promises.
"""

from __future__ import annotations

import pytest

SEEDS = range(25)


class Workload:
    """Produces until something happens. One partition, so that order is total."""

    def __init__(self, machine, acks: int, **config: object) -> None:
        self.machine = machine
        self.acks = acks
        self.sent: list[bytes] = []
        self.waiting: list[tuple[int, list[int]]] = []
        """(records sent with it and before, where its answer comes)."""
        self.acked: list[tuple[int, int]] = []
        """(records acknowledged with it and before, when in ms)."""
        machine.boot()
        machine.topic(**config)

    def run(self, steps: int, *, think_ms: int = 0) -> None:
        machine, chance = self.machine, self.machine.random
        for _ in range(steps):
            first, count = len(self.sent), chance.randint(1, 4)
            values = [b"%d" % number * chance.randint(1, 200) for number in range(first, first + count)]
            told = machine.produce(values, self.acks)
            self.sent += values
            self.waiting.append((len(self.sent), told))
            if machine.flush_later and chance.random() < 0.3:
                machine.run_flushes()
            machine.pass_ms(chance.randint(0, think_ms))
            self.note()

    def note(self) -> None:
        while self.waiting and self.waiting[0][1]:
            count, told = self.waiting.pop(0)
            assert told == [0]
            self.acked.append((count, self.machine.clock.now_ms))

    def acked_until(self, ms: int | None = None) -> int:
        """How many records were acknowledged, at `ms` or before."""
        return max((count for count, when in self.acked if ms is None or when <= ms), default=0)

    def found(self) -> int:
        """Restart; how many records are there, all of them as they were sent."""
        self.machine.boot()
        values = self.machine.values()
        assert values == self.sent[: len(values)]
        return len(values)


def killed(new_machine, seed: int, acks: int, **config: object) -> tuple[Workload, int]:
    work = Workload(new_machine(seed), acks, **config)
    work.machine.flush_later = seed % 2 == 1
    work.run(30, think_ms=20)
    work.machine.kill()
    return work, work.found()


def cut(new_machine, seed: int, acks: int, think_ms: int = 20, **config: object) -> tuple[Workload, int]:
    """Run, then lose the machine, every other time with flushes under way on their thread."""
    work = Workload(new_machine(seed), acks, **config)
    work.machine.flush_later = seed % 2 == 1
    work.run(40, think_ms=think_ms)
    work.machine.crash()
    return work, work.found()


# ---------------------------------------------------------------- the process is killed


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("config", [{}, {"flush_messages": 7}, {"flush_ms": 50}], ids=["default", "messages", "ms"])
def test_a_killed_process_loses_nothing_acknowledged(acks, config, new_machine):
    for seed in SEEDS:
        work, found = killed(new_machine, seed, acks, **config)
        assert found >= work.acked_until(), seed


def test_a_killed_process_loses_nothing_that_reached_the_log_even_unacknowledged(new_machine):
    for seed in SEEDS:
        work, found = killed(new_machine, seed, 0)
        assert found == len(work.sent), seed


# ---------------------------------------------------------------- the machine goes down


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_without_flush_settings_a_power_cut_may_lose_all_that_was_not_rolled(acks, new_machine):
    """What is found is whole and in order, but nothing is promised: some seeds lose acknowledged records."""
    lost = 0
    for seed in SEEDS:
        work, found = cut(new_machine, seed, acks)
        lost += found < work.acked_until()
    assert lost


def test_without_flush_settings_a_segment_that_was_closed_survives_a_power_cut(new_machine):
    for seed in SEEDS:
        machine = new_machine(seed)
        machine.boot()
        machine.topic(segment_bytes=1 << 20)
        values = [b"%d" % number * 300_000 for number in range(4)]
        for value in values:
            assert machine.produce([value]) == [0]
        assert machine.broker.replicas.led.get(("t", 0)).log.segment_count == 2
        machine.pass_ms(0)
        assert machine.produce([b"last"]) == [0]
        machine.crash()
        machine.boot()
        assert machine.values()[:3] == values[:3], seed


@pytest.mark.parametrize("acks", [1, -1])
def test_with_flush_messages_1_a_power_cut_loses_nothing_acknowledged(acks, new_machine):
    for seed in SEEDS:
        work, found = cut(new_machine, seed, acks, flush_messages=1)
        assert work.acked
        assert found >= work.acked_until(), seed


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("messages", [2, 5, 20])
def test_with_flush_messages_m_a_power_cut_loses_fewer_than_m_acknowledged(acks, messages, new_machine):
    worst = 0
    for seed in SEEDS:
        work, found = cut(new_machine, seed, acks, flush_messages=messages)
        worst = max(worst, work.acked_until() - found)
        assert work.acked_until() - found < messages, seed
    assert worst > 0, "the bound would not be tested"


def test_with_flush_messages_m_and_acks_0_a_power_cut_loses_fewer_than_m_that_reached_the_log(new_machine):
    """Where flushes come to an end at once: nothing holds a producer back that waits for no answer."""
    for seed in range(0, 50, 2):
        work, found = cut(new_machine, seed, 0, flush_messages=5)
        assert len(work.sent) - found < 5, seed


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("interval_ms", [10, 100])
def test_with_flush_ms_s_a_power_cut_loses_at_most_the_last_s_ms(acks, interval_ms, new_machine):
    """Where a sync takes no time; as long as one takes comes on top."""
    lost = 0
    for seed in range(0, 50, 2):
        work, found = cut(new_machine, seed, acks, think_ms=30, flush_ms=interval_ms)
        before = work.acked_until(work.machine.clock.now_ms - interval_ms)
        assert found >= before, seed
        lost += found < work.acked_until()
    assert lost, "the bound would not be tested"


def test_with_flush_ms_s_and_acks_0_a_power_cut_loses_at_most_the_last_s_ms(new_machine):
    for seed in range(0, 50, 2):
        work, found = cut(new_machine, seed, 0, think_ms=30, flush_ms=50)
        assert found >= work.acked_until(work.machine.clock.now_ms - 50), seed


@pytest.mark.parametrize("acks", [1, -1])
def test_with_both_flush_settings_a_power_cut_loses_no_more_than_either_allows(acks, new_machine):
    for seed in range(0, 50, 2):
        work, found = cut(new_machine, seed, acks, think_ms=30, flush_messages=6, flush_ms=40)
        assert work.acked_until() - found < 6, seed
        assert found >= work.acked_until(work.machine.clock.now_ms - 40), seed


def test_a_clean_stop_before_the_power_cut_loses_nothing(new_machine):
    for seed in SEEDS:
        work = Workload(new_machine(seed), 1)
        work.run(30)
        work.machine.broker.close()
        work.machine.crash()
        assert work.found() == len(work.sent), seed


def test_topics_and_their_settings_survive_a_power_cut_as_soon_as_they_are_answered(new_machine):
    for seed in SEEDS:
        machine = new_machine(seed)
        machine.boot()
        machine.topic("kept", 3, flush_messages=9)
        machine.crash()
        machine.boot()
        assert machine.broker.cluster.partition_count("kept") == 3
        assert machine.broker.metadata.topic_settings("kept").flush_messages == 9


def test_offsets_are_never_given_twice_for_what_was_acknowledged_durably(new_machine):
    """Life goes on after a cut: what is appended now comes behind what survived, and nothing old comes back."""
    for seed in SEEDS:
        work, found = cut(new_machine, seed, -1, flush_messages=3)
        machine = work.machine
        machine.flush_later = False
        assert machine.produce([b"again"], -1) == [0]
        machine.pass_ms(0)
        assert machine.produce([b"and", b"again"], -1) == [0]
        machine.crash()
        machine.boot()
        assert machine.values()[: found + 1] == [*work.sent[:found], b"again"]


def test_a_log_start_that_was_told_never_goes_back(new_machine):
    """Retention told readers of it while the checkpoint was being written, and a crash took it back."""
    for seed in range(20):
        machine = new_machine(seed)
        machine.boot()
        machine.topic(retention_ms=1000)
        log = machine.broker.replicas.led.get(("t", 0)).log
        for number in range(6):
            assert machine.produce([b"%d" % number]) == [0]
            log.roll(machine.clock.wall_ms())
        machine.flush_later = True
        machine.pass_ms(301_000)
        assert machine.flushes
        told = [log.start_offset]
        for _ in range(seed % 4):
            if machine.flushes:
                machine.flushes.pop(0)[0]() if seed % 2 else machine.run_flushes()
            machine.pass_ms(5)
            told.append(log.start_offset)
        if seed % 3:
            machine.crash()
        else:
            machine.kill()
        machine.boot()
        assert machine.broker.replicas.led.get(("t", 0)).log.start_offset >= max(told), seed


def test_what_comes_while_a_sync_is_under_way_shares_the_next(machine):
    machine.boot()
    machine.topic(flush_messages=1)
    machine.flush_later = True
    told = [machine.produce([b"%d" % number]) for number in range(4)]
    assert told == [[], [], [], []]
    ((sync, done),) = machine.flushes
    machine.flushes.clear()
    sync()
    done(None)
    machine.broker.turn.end()
    assert told == [[0], [], [], []], "the others came after it began"
    machine.run_flushes()
    assert told == [[0], [0], [0], [0]]
    syncs = [line for line in machine.disk.trace if " sync /data/t-0/" in line and line.endswith(".log")]
    assert len(syncs) == 2
    machine.crash()
    machine.boot()
    assert machine.values() == [b"0", b"1", b"2", b"3"]
