"""Stories of clients that are told with the broker cut short at every single write (tests/simulation/coordinators).

A story is told once to count the writes, and then once for each of them with the cut there: in the middle of the write,
and right after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from logkernel.requests.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT, UNSTABLE = 14, 15, 16, 51, 88
PASSING = (LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT, UNSTABLE)
"""Codes of what is tried again."""
GROUP_RESOURCE = 32


class Gone(Exception):
    """The client died together with the broker."""


class Story(ABC):
    """Clients of one broker, and what must hold whenever it comes up. `world` is the conftest's `World`."""

    restarts: ClassVar = 0
    """How often `end` restarts the broker."""

    def __init__(self, world: Any, group: str, settings: dict[str, str], topics: dict[str, int]) -> None:
        """Make the topics (name → partitions), and set what a group has of its own."""
        self.world = world
        for topic, partitions in topics.items():
            world.broker.create_topic(topic, partitions, {})
        rows = [IncrementalAlterConfigsAlterableConfig(name, 0, value) for name, value in settings.items()]
        resource = IncrementalAlterConfigsAlterConfigsResource(GROUP_RESOURCE, group, rows)
        world.ask(IncrementalAlterConfigsRequest([resource]))
        world.on_boot = self.look

    @abstractmethod
    def tell(self) -> None:
        """All of it; the broker may be cut short at any write of it."""

    @abstractmethod
    def end(self) -> None:
        """What must hold when all is told; the broker is not cut short any more."""

    @abstractmethod
    def look(self) -> None:
        """A broker came up; nobody has spoken to it yet."""

    def outlives(self, work: Callable[[], None]) -> bool:
        """Whether the client that does this is still there afterwards."""
        try:
            work()
        except Gone:
            return False
        return True

    # ------------------------------------------------------------ offsets of `in`-0

    def commit_once(self, group: str, offset: int, member: str, epoch: int) -> None:
        """Until it is answered."""
        topics = [OffsetCommitRequestTopic("in", [OffsetCommitRequestPartition(0, offset)])]
        request = OffsetCommitRequest(group, epoch, member, topics=topics)

        def ask() -> Any:
            return self.world.ask(request, "group_not_found", "member_epochs")

        def code(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        found = code(self.world.until(ask, code, *PASSING))
        assert found == 0, found

    def offset_of(self, group: str, *, stable: bool = True, heir: bool | None = None) -> int:
        asked = OffsetFetchRequestGroup(group, [OffsetFetchRequestTopics("in", [0])])
        request = OffsetFetchRequest(require_stable=stable, groups=[asked])

        def code(answer: Any) -> int:
            (found,) = answer.groups
            return int(found.error_code or found.topics[0].partitions[0].error_code)

        answer = self.world.until(lambda: self.world.ask(request, heir=heir), code, *PASSING)
        assert code(answer) == 0
        return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def cut_at_every_write(begin: Callable[[], Story], fewest: int) -> None:
    """Tell what `begin` makes, once for each of its writes; there must be more than `fewest`."""
    writes = _told(begin())
    assert len(writes) > fewest, "nothing happened"
    for number, kind in enumerate(writes, 1):
        for whole in (False, True) if kind in ("append", "sync") else (False,):
            try:
                _told(begin(), number, whole=whole)
            except BaseException as error:
                where = f"{'after' if whole else 'in the middle of'} write {number} of {len(writes)}, {kind}"
                raise AssertionError(f"cut {where}: {error!r}") from error


def _told(story: Story, cut: int = 0, *, whole: bool = False) -> list[str]:
    """What the writes were, of one without a cut."""
    world = story.world
    disk, before = world.disk, world.disk.operations
    if cut:
        world.cut_at(cut, whole=whole)
    story.tell()
    writes = [] if cut else list(disk.kinds[before:])
    story.end()
    assert world.boots == 1 + bool(cut) + story.restarts
    return writes
