"""What every coordination promises: what is committed is kept, whole and in order, also by the next process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from uuid import UUID

from hypothesis import strategies as st

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import Coordination, MetadataChange, StateLog
from logkernel.controller.controller import Controller
from logkernel.controller.image import ClusterImage
from logkernel.errors import KafkaStorageError
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown
from logkernel.vocabulary import Record

CHANGES = [
    MetadataChange("topic", "orders", {"id": "x", "partitions": [[[1], [1], 1, 0, 0]]}),
    MetadataChange("config", "topic:orders", {"retention.ms": "1", "ключ": "值"}),
    MetadataChange("topic", "orders", None),
]
TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ANY_CHANGE = st.builds(
    MetadataChange,
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=10),
    TEXT,
    st.none() | st.dictionaries(TEXT, JSON, max_size=3),
)


@mutable
class ListLog:
    """`contracts.StateLog` in memory, whose batches outlive it. Appends that are not durable are an error."""

    batches: list[list[Record]] = field(factory=list)
    closed: bool = False

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        if not sync:
            raise AssertionError("an append without sync may be lost by a crash; pass sync=True")
        self._check_open()
        self.batches.append(list(records))
        return sum(map(len, self.batches))

    def replace(self, records: Sequence[Record]) -> None:
        self._check_open()
        self.batches = [list(records)]

    def records(self) -> Iterator[Record]:
        return (record for batch in self.batches for record in batch)

    def close(self) -> None:
        self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise AssertionError("the log was closed")


class CoordinationContract(Kit[Coordination]):
    """`logkernel.contracts.Coordination`. `settings` are the broker's; where you override `make`, use
    `self.open_log`."""

    kind = "coordination"
    methods = ("changes", "commit", "kept", "replace", "close")
    durable: bool = True
    """Whether it keeps its changes in the log that the broker lends it."""
    log: ListLog

    def provide(self, kernel: Kernel, name: str) -> Coordination:
        return kernel.coordination(name, self.open_log, self.config)

    def open_log(self) -> StateLog:
        """Open the log that a broker would lend the coordination."""
        self.log = ListLog()
        return self.log

    def test_changes_come_back_whole_and_in_order(self) -> None:
        made = self.make()
        self._holds(made, [])
        made.commit(CHANGES[:2])
        made.commit([])
        made.commit(CHANGES[2:])
        self._holds(made, CHANGES)
        self._holds(made, CHANGES)

    @for_all(40, commits=st.lists(st.lists(ANY_CHANGE, max_size=3), max_size=4))
    def test_any_change_comes_back(self, commits: list[list[MetadataChange]]) -> None:
        made = self.make()
        for changes in commits:
            with self.calling("commit()"):
                made.commit(changes)
        self._holds(made, [change for changes in commits for change in changes])

    def test_a_change_is_kept_as_it_was_when_it_was_committed(self) -> None:
        """The broker goes on with the objects that it gave."""
        made = self.make()
        value = {"a": [1]}
        made.commit([MetadataChange("x", "y", value)])
        value["a"].append(2)
        self._holds(made, [MetadataChange("x", "y", {"a": [1]})])

    def test_all_changes_can_be_replaced(self) -> None:
        """The broker does it when most of them are outdated, which `kept` tells."""
        made = self.make()
        made.commit(CHANGES)
        self._counts(made, 3)
        made.replace(CHANGES[1:2])
        self._holds(made, CHANGES[1:2])
        made.commit(CHANGES[:1])
        self._holds(made, [CHANGES[1], CHANGES[0]])
        self._counts(made, 2)
        made.replace([])
        self._holds(made, [])

    def test_a_closed_one_stores_nothing(self) -> None:
        """A commit that looks stored and is not would be an acknowledged loss."""
        made = self.make()
        made.close()
        with self.calling("close() for the second time"):
            made.close()
        self.refused("commit() after close()", KafkaStorageError, lambda: made.commit(CHANGES))
        self.refused("replace() after close()", KafkaStorageError, lambda: made.replace(CHANGES))
        self.refused("changes() after close()", KafkaStorageError, lambda: list(made.changes()))

    def test_a_restart_finds_what_was_committed(self) -> None:
        if not self.durable:
            return
        made = self.make()
        made.commit(CHANGES)
        made.close()
        log = ListLog(self.log.batches)
        self.open_log = lambda: log  # type: ignore[method-assign]
        self._holds(self.make(), CHANGES, " after a restart")

    def test_a_controllers_image_is_the_same_after_a_restart(self) -> None:
        ids = count(1)
        controller = Controller(self.config, 1, lambda: UUID(int=next(ids)))
        made, image = self.make(), ClusterImage()
        for name in ("a", "b", "c"):
            result = controller.create_topic(image, name, 3, settings={"flush.ms": "1"})
            made.commit(result.changes)
            image.apply_all(result.changes)
        result = controller.delete_topic(image, "b")
        made.commit(result.changes)
        image.apply_all(result.changes)
        if ClusterImage.of(made.changes()) != image:
            self.broken(
                "changes() of a controller's commits make another cluster than the controller's; keep their order"
            )

    def _holds(self, made: Coordination, expected: Sequence[MetadataChange], when: str = "") -> None:
        with self.calling("changes()"):
            found = list(made.changes())
        if found != list(expected):
            self.broken(f"changes() returned {shown(found)}{when}; return what was committed: {shown(list(expected))}")

    def _counts(self, made: Coordination, expected: int) -> None:
        if (found := made.kept()) != expected:
            self.broken(f"kept() returned {found} with {expected} changes stored; return the number of changes stored")
