"""Coordinations that break a promise."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from logkernel.contracts import MetadataChange, StateLog
from logkernel.errors import KafkaStorageError
from logkernel.kernel import Kernel
from wrong_plugins import Wrong, made


class Right:
    """In memory."""

    def __init__(self) -> None:
        self.stored: list[MetadataChange] = []
        self.closed = False

    def changes(self) -> Any:
        self.check()
        return iter(copy.deepcopy(self.stored))

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self.check()
        self.stored += copy.deepcopy(list(changes))

    def kept(self) -> int:
        return len(self.stored)

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self.check()
        self.stored = copy.deepcopy(list(changes))

    def close(self) -> None:
        self.closed = True

    def check(self) -> None:
        if self.closed:
            raise KafkaStorageError("closed")


class NewestFirst(Right):
    def changes(self) -> Any:
        return reversed(self.stored)


class NoNulls(Right):
    def commit(self, changes: Sequence[MetadataChange]) -> None:
        super().commit([change for change in changes if change.value])


class Lending(Right):
    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self.check()
        self.stored += changes


class Counting(Right):
    def __init__(self) -> None:
        super().__init__()
        self.commits = 0

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        super().commit(changes)
        self.commits += 1

    def kept(self) -> int:
        return self.commits


class Appending(Right):
    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self.commit(changes)


class NeverClosed(Right):
    def check(self) -> None:
        """It goes on."""


class ClosedOnce(Right):
    def close(self) -> None:
        self.check()
        self.closed = True


class DeletionsFirst(Right):
    def changes(self) -> Any:
        return iter(sorted(super().changes(), key=lambda change: change.value is not None))


def not_synced(suite: Any) -> Any:
    class Hasty:
        """The log without durability."""

        def __init__(self, log: Any) -> None:
            self.log = log

        def append(self, records: Any, *, sync: bool) -> int:
            return int(self.log.append(records, sync=False))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.log, name)

    def opened() -> StateLog:
        return Hasty(suite.open_log())

    return Kernel().coordination("local", opened)


WRONG = [
    Wrong(
        "test_changes_come_back_whole_and_in_order",
        r"changes\(\) returned \[.*return what was",
        made(lambda _: NewestFirst()),
    ),
    Wrong("test_any_change_comes_back", "return what was committed", made(lambda _: NoNulls())),
    Wrong("test_any_change_comes_back", r"commit\(\) raised AssertionError: .*pass sync=True", made(not_synced)),
    Wrong("test_a_change_is_kept_as_it_was_when_it_was_committed", r"\[1, 2\]", made(lambda _: Lending())),
    Wrong("test_all_changes_can_be_replaced", r"kept\(\) returned 1 with 3 changes", made(lambda _: Counting())),
    Wrong("test_all_changes_can_be_replaced", r"changes\(\) returned", made(lambda _: Appending())),
    Wrong(
        "test_a_closed_one_stores_nothing", r"commit\(\) after close\(\) returned None", made(lambda _: NeverClosed())
    ),
    Wrong("test_a_closed_one_stores_nothing", "for the second time raised", made(lambda _: ClosedOnce())),
    Wrong(
        "test_a_restart_finds_what_was_committed",
        r"changes\(\) returned \[\] after a restart",
        made(lambda suite: (suite.open_log(), Right())[1]),
    ),
    Wrong(
        "test_a_controllers_image_is_the_same_after_a_restart",
        "another cluster than the",
        made(lambda _: DeletionsFirst()),
    ),
]
