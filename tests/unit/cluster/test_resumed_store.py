"""A store whose brokers go on where a snapshot found them."""

from __future__ import annotations

from typing import Any

from logkernel.cluster.store import SharedStore
from logkernel.kernel import Kernel


class Events:
    def __init__(self) -> None:
        self.controllers: list[int | None] = []

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.controllers.append(node_id)

    def on_changes(self, changes: Any) -> None:
        """Not looked at here."""

    on_session = on_changes


def no_log() -> Any:
    raise AssertionError


def test_nobody_is_elected_before_all_are_back_and_each_has_its_epoch() -> None:
    store = SharedStore(Kernel().coordination("memory", no_log), {1: 7, 2: 8})
    one, two, three = store.session(), store.session(), store.session()
    events = Events()
    one.subscribe(events, lambda: None)
    assert one.announce(1, {}) == 7
    assert (one.campaign(1), store.controller_id) == (None, None)
    assert three.announce(3, {}) == 1  # it was not there then
    assert two.announce(2, {}) == 8
    one.poll()
    assert events.controllers == [None, None]  # asked to campaign again
    assert one.campaign(1) == 1
    one.close()
    again = store.session()
    assert again.announce(1, {}) == 2  # a start like any other
