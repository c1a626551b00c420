"""Commits: their order, and what each answer leads to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logkernel.client.consumer.commits import Commit, Commits, full
from logkernel.client.consumer.metrics import ConsumerMetrics
from logkernel.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    IllegalGeneration,
    NetworkException,
    NotCoordinator,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    RequestTimedOut,
    StaleMemberEpoch,
    UnknownMemberId,
    UnstableOffsetCommit,
    error_for,
)
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from logkernel.vocabulary import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Crew:
    """Stands for the membership."""

    def __init__(self) -> None:
        self.key = ("group", "g")
        self.group_id, self.member_id, self.instance_id = "g", "me", None
        self.generation = 3
        self.owned = {T0, T1}
        self.heard: list[Any] = []

    @property
    def member(self) -> bool:
        return self.generation >= 0

    def rejoin(self) -> None:
        self.heard.append("rejoin")

    def stale(self) -> None:
        self.heard.append("stale")

    def lost(self, code: int) -> None:
        self.heard.append(code)


class Bench:
    def __init__(self, play: Callable[..., Any], **settings: Any) -> None:
        self.core = play(group_id="g", **settings)
        self.crew = Crew()
        settings = self.core.settings
        self.commits = Commits(self.core, self.crew, settings, ConsumerMetrics(settings))  # type: ignore[arg-type]
        self.told: list[tuple[int, Exception | None]] = []

    def commit(self, offset: int, partition: TopicPartition = T0, deadline_ms: int = 9000) -> Bench:
        def told(commit: Commit) -> None:
            self.told.append((offset, commit.error))

        self.commits.commit(Commit({partition: (offset, -1, "")}, deadline_ms, told))
        return self

    def answer(self, code: int = 0) -> None:
        row = OffsetCommitResponseTopic("t", [OffsetCommitResponsePartition(0, code)])
        self.core.answer(OffsetCommitResponse(topics=[row]))

    def sent(self) -> tuple[int, int]:
        """(offset, epoch) of the one that is under way."""
        request = self.core.asked(OffsetCommitRequest)
        return request.topics[0].partitions[0].committed_offset, request.generation_id_or_member_epoch


def test_one_after_the_other(play: Callable[..., Any]) -> None:
    bench = Bench(play).commit(5).commit(6).commit(7)
    for offset in (5, 6, 7):
        assert bench.sent() == (offset, 3)
        bench.answer()
    assert bench.told == [(5, None), (6, None), (7, None)]
    assert bench.core.calls == []


def test_nothing_to_commit_is_done_in_its_turn(play: Callable[..., Any]) -> None:
    bench = Bench(play).commit(5)
    bench.commits.commit(Commit({}, 9000, lambda commit: bench.told.append((0, commit.error))))
    assert bench.told == []
    bench.answer()
    assert bench.told == [(5, None), (0, None)]


@pytest.mark.parametrize(
    ("error", "heard"),
    [
        (RebalanceInProgress, ["rejoin"]),
        (UnknownMemberId, [UnknownMemberId.code]),
        (IllegalGeneration, [IllegalGeneration.code]),
        (OffsetMetadataTooLarge, []),
        (GroupAuthorizationFailed, []),
    ],
)
def test_a_commit_that_is_refused(play: Callable[..., Any], error: Any, heard: list[Any]) -> None:
    bench = Bench(play).commit(5).commit(6)
    bench.answer(error.code)
    ((offset, found),) = bench.told
    assert offset == 5
    assert isinstance(found, error)
    assert bench.crew.heard == heard
    assert bench.sent() == (6, 3), "the next one goes on"


@pytest.mark.parametrize("error", [NotCoordinator, CoordinatorNotAvailable, CoordinatorLoadInProgress, RequestTimedOut])
def test_what_a_new_attempt_may_mend_is_sent_again(play: Callable[..., Any], error: Any) -> None:
    bench = Bench(play).commit(5)
    row = OffsetCommitResponseTopic(
        "t", [OffsetCommitResponsePartition(0), OffsetCommitResponsePartition(1, error.code)]
    )
    assert bench.core.calls[0].verdict(OffsetCommitResponse(topics=[row])) == error.code


def test_no_success_in_its_time_is_an_error(play: Callable[..., Any]) -> None:
    bench = Bench(play).commit(5)
    bench.core.fail(RequestTimedOut("late"))
    assert isinstance(bench.told[0][1], RequestTimedOut)


def test_a_stale_epoch_waits_for_the_next_one(play: Callable[..., Any]) -> None:
    bench = Bench(play).commit(5).commit(6)
    bench.answer(StaleMemberEpoch.code)
    assert (bench.told, bench.crew.heard, bench.core.calls) == ([], ["stale"], [])
    assert bench.commits.step(2000) == 9000
    bench.crew.generation = 4
    assert bench.commits.step(2000) == 2000
    assert bench.sent() == (5, 4)
    bench.answer()
    assert bench.sent() == (6, 4)
    assert bench.told == [(5, None)]


@pytest.mark.parametrize("change", ["outside", "not owned", "late"])
def test_a_stale_commit_that_cannot_go_again_fails(play: Callable[..., Any], change: str) -> None:
    bench = Bench(play).commit(5).commit(6, T1)
    bench.answer(StaleMemberEpoch.code)
    if change == "outside":
        bench.crew.generation = -1
    elif change == "not owned":
        bench.crew.generation, bench.crew.owned = 4, {T1}
    bench.commits.step(9000 if change == "late" else 2000)
    ((offset, error),) = bench.told
    assert offset == 5
    assert isinstance(error, StaleMemberEpoch)
    assert bench.sent()[0] == 6, "the next one goes on"


@pytest.mark.parametrize("error", [UnknownMemberId, IllegalGeneration])
def test_a_commit_that_a_round_has_passed_does_not_end_the_membership(play: Callable[..., Any], error: Any) -> None:
    """The coordinator was a generation further when it came: what is kept over the round is still this member's."""
    bench = Bench(play).commit(5)
    bench.crew.generation = 4
    bench.answer(error.code)
    assert isinstance(bench.told[0][1], RebalanceInProgress)
    assert bench.crew.heard == []


def test_outside_a_group_nobody_is_named(play: Callable[..., Any]) -> None:
    bench = Bench(play)
    bench.crew.generation = -1
    bench.commit(5)
    request = bench.core.asked(OffsetCommitRequest)
    assert (request.member_id, request.generation_id_or_member_epoch, request.group_instance_id) == ("", -1, None)


def test_the_end_fails_all_that_wait(play: Callable[..., Any]) -> None:
    bench = Bench(play).commit(5).commit(6)
    bench.commits.abandon(NetworkException("over"))
    assert [offset for offset, _ in bench.told] == [5, 6]
    bench.answer()
    assert len(bench.told) == 2, "told once"


# ---------------------------------------------------------------- reading


def found(code: int = 0, group_code: int = 0, *offsets: int) -> OffsetFetchResponse:
    rows = [OffsetFetchResponsePartitions(index, offset, 2, "m", code) for index, offset in enumerate(offsets or (7,))]
    group = OffsetFetchResponseGroup("g", [OffsetFetchResponseTopics("t", rows)], error_code=group_code)
    return OffsetFetchResponse(groups=[group])


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_committed_offsets_are_read(play: Callable[..., Any], isolation: str) -> None:
    bench = Bench(play, isolation_level=isolation)
    told: list[Any] = []
    reading = bench.commits.read([T0, T1], 9000, told.append)
    assert bench.core.asked(OffsetFetchRequest).require_stable is (isolation == "read_committed")
    bench.core.answer(found(0, 0, 7, -1))
    assert reading.found == {T0: (7, 2, "m")}, "no offset is no entry"
    assert told == [reading]


@pytest.mark.parametrize(("code", "group_code"), [(UnstableOffsetCommit.code, 0), (0, NotCoordinator.code)])
def test_a_reading_that_is_not_to_be_had_yet(play: Callable[..., Any], code: int, group_code: int) -> None:
    bench = Bench(play)
    bench.commits.read([T0], 9000, lambda reading: None)
    verdict = bench.core.calls[0].verdict(found(code, group_code))
    assert verdict == (code or group_code)
    assert getattr(error_for(verdict), "retriable", False)


@pytest.mark.parametrize(
    ("given", "error"), [({("t", 0): -1}, ValueError), ({("t", 0): (1, 2)}, ValueError), ({"t": 1}, ValueError)]
)
def test_offsets_that_are_none(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        full(given)
