"""Cleanup policies that break a promise."""

from __future__ import annotations

import random
from typing import Any

from logkernel.contracts import DropBefore, LogFacts, Rewrite
from wrong_plugins import Wrong, made


class Rule:
    """Keeps everything."""

    def learn(self, batch: Any) -> Any:
        return None

    def keep(self, batch: Any, end: int) -> Any:
        return None


class Nothing:
    """Drops nothing, and rewrites what is closed once."""

    rule: Any = Rule

    def plan(self, log: LogFacts) -> Any:
        start, end = log.segments[0].base_offset, log.segments[-1].base_offset
        if (log.clean_offset or 0) >= end or start == end:
            return []
        return [Rewrite(start, end, self.rule(), "of a test")]


class Greedy(Nothing):
    def plan(self, log: LogFacts) -> Any:
        return [DropBefore(log.segments[-1].next_offset + 1, "all of it")]


class NeedsClosed(Nothing):
    def plan(self, log: LogFacts) -> Any:
        return [DropBefore(log.segments[-2].base_offset and 0, "but one")]


class Dice(Nothing):
    def plan(self, log: LogFacts) -> Any:
        return [DropBefore(random.randint(0, log.high_watermark), "by chance")]


class Endless(Nothing):
    """It forgets that a rewrite was done."""

    def plan(self, log: LogFacts) -> Any:
        return (
            [DropBefore(log.log_start_offset + 1, "one more")]
            if log.log_start_offset < log.high_watermark
            else [
                Rewrite(log.segments[0].base_offset, log.segments[-1].base_offset, Rule(), "again"),
                DropBefore(max(0, log.log_start_offset - 1), "back"),
            ]
        )


class ShortRule(Rule):
    def keep(self, batch: Any, end: int) -> Any:
        return bytearray(batch.count - 1)


class DroppingRule(Rule):
    def learn(self, batch: Any) -> Any:
        return batch.base_offset

    def keep(self, batch: Any, end: int) -> Any:
        return bytearray(batch.count)


class LostRule(Rule):
    def learn(self, batch: Any) -> Any:
        return -1


class ByKey(Rule):
    def keep(self, batch: Any, end: int) -> Any:
        return bytearray(record.key[0] != 97 for record in batch.records())


class HastyRun(Rule):
    def learn_run(self, run: Any) -> Any:
        return 0

    def keep_run(self, run: Any, end: int) -> Any:
        return bytearray(100)


class BoastingRun(HastyRun):
    def learn_run(self, run: Any) -> Any:
        return 2048


def ruled(rule: Any) -> dict[str, Any]:
    return made(lambda _: type("Ruled", (Nothing,), {"rule": rule})())


PROMISE = "test_a_rule_judges_every_record_and_keeps_what_lies_behind_its_end"
RUNS = "test_a_rule_judges_runs_of_batches_as_single_ones"
WRONG = [
    Wrong("test_a_plan_stays_within_what_may_go", "only records below the high watermark", made(lambda _: Greedy())),
    Wrong("test_a_plan_stays_within_what_may_go", r"plan\(\) raised IndexError", made(lambda _: NeedsClosed())),
    Wrong("test_equal_facts_give_equal_plans", "depend on the facts alone", made(lambda _: Dice())),
    Wrong("test_plans_that_are_carried_out_come_to_an_end", r"goes on after \d+ plans", made(lambda _: Endless())),
    Wrong(PROMISE, r"keep\(\) returned \d bytes for a batch of \d records", ruled(ShortRule)),
    Wrong(PROMISE, r"keep\(\) drops the record \d+ though the rewrite ends at", ruled(DroppingRule)),
    Wrong(PROMISE, r"learn\(\) returned -1", ruled(LostRule)),
    Wrong(PROMISE, r"keep\(\) raised TypeError", ruled(ByKey)),
    Wrong(RUNS, r"keep_run\(\) says 0 of the batch at .*judge it as keep\(\) does, or say 2", ruled(HastyRun)),
    Wrong(RUNS, r"learn_run\(\) returned 2048 for \d batches", ruled(BoastingRun)),
]
