"""ISR policies that break a promise."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import FollowerFacts
from wrong_plugins import Wrong, made


class Right:
    """As the built-in policy "time"."""

    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return follower.lag_records == 0 or follower.caught_up_ms <= follower.lag_time_max_ms


class Counting(Right):
    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return follower.lag_records


class Assuming(Right):
    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return int.__add__(follower.lag_records, 0) == 0  # type: ignore[arg-type]


class Remembering(Right):
    def __init__(self) -> None:
        self.calls = 0

    def is_in_sync(self, follower: FollowerFacts) -> Any:
        self.calls += 1
        return self.calls > 1


class ByAge(Right):
    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return follower.caught_up_ms <= follower.lag_time_max_ms


class MembersOnly(Right):
    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return follower.is_member and super().is_in_sync(follower)


class Strict(Right):
    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return follower.lag_records == 0


class Loyal(Right):
    def is_in_sync(self, follower: FollowerFacts) -> Any:
        return True


WRONG = [
    Wrong("test_it_says_true_or_false_to_any_follower", "return True or False", made(lambda _: Counting())),
    Wrong("test_it_says_true_or_false_to_any_follower", r"is_in_sync\(\) raised TypeError", made(lambda _: Assuming())),
    Wrong("test_equal_facts_give_equal_answers", "of a new object for", made(lambda _: Remembering())),
    Wrong(
        "test_a_follower_with_all_records_is_in_sync", "lets a member go that has all records", made(lambda _: ByAge())
    ),
    Wrong("test_a_follower_with_all_records_is_in_sync", "nothing would let it in", made(lambda _: MembersOnly())),
    Wrong("test_a_member_that_is_just_behind_stays", "lacks one record since now", made(lambda _: Strict())),
    Wrong("test_a_member_that_is_dead_leaves", "acks=all would wait for it for ever", made(lambda _: Loyal())),
    Wrong("test_a_simulated_cluster_becomes_whole_again", "does not recover", made(lambda _: MembersOnly())),
]
