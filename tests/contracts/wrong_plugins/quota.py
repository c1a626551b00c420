"""Quotas that break a promise."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import Usage
from wrong_plugins import Wrong, made


class Open:
    """A quota that keeps its promises: it limits nobody."""

    def __init__(self) -> None:
        self.used = 0
        self.clients: dict[Any, int] = {}

    def throttle(self, usage: Usage) -> Any:
        return 0


class Seconds(Open):
    def throttle(self, usage: Usage) -> Any:
        return usage.written / 1000


class NeedsName(Open):
    def throttle(self, usage: Usage) -> Any:
        return len(usage.client.client_id)  # type: ignore[arg-type]


class Grudge(Open):
    def throttle(self, usage: Usage) -> Any:
        self.used += usage.written
        return 60_000 * (self.used > 1_000)


class Elephant(Open):
    def throttle(self, usage: Usage) -> Any:
        self.used += usage.written
        return self.used // 5_000


class Ledger(Open):
    def throttle(self, usage: Usage) -> Any:
        self.clients[usage.client.client_id] = usage.mono_ms
        return 0


ANY = "test_it_answers_with_a_time_whatever_is_used"
WRONG = [
    Wrong(ANY, "answered .*; return ms as an int, 0 or more", made(lambda _: Seconds())),
    Wrong(ANY, "failed in quota .*TypeError", made(lambda _: NeedsName())),
    Wrong("test_a_client_that_waits_may_use_it_again", "let what was used be forgotten", made(lambda _: Grudge())),
    Wrong("test_a_long_pause_is_forgiven", "a day after it used 5,000 bytes", made(lambda _: Elephant())),
    Wrong("test_clients_that_are_gone_take_no_memory", "forget them", made(lambda _: Ledger())),
]
