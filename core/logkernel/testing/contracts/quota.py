"""What every quota promises to the clients that it limits, and to the broker that asks it."""

from __future__ import annotations

from hypothesis import strategies as st

from logkernel.contracts import Quota, RequestContext, Usage
from logkernel.guards.quota import MAX_THROTTLE_MS
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, traced_memory

BEGIN_MS = 10**9
SIZES = st.sampled_from([0, 1, 100, 1 << 20, 100 << 20])
STEPS = st.lists(
    st.tuples(st.booleans(), SIZES, st.integers(0, 100_000), st.none() | st.sampled_from(["a", "b"]), st.booleans()),
    max_size=20,
)
"""Of each: whether it writes, bytes, ms since the one before, client id, whether a service asks."""
IDLE_MS = 24 * 3600 * 1000
CLIENTS = 4_000
KEPT_BYTES = 1 << 20
"""Most memory for clients that came once and are long gone."""


class QuotaContract(Kit[Quota]):
    """`logkernel.contracts.Quota`. `settings` are the topic's."""

    kind = "quota"
    methods = ("throttle",)

    def provide(self, kernel: Kernel, name: str) -> Quota:
        return kernel.quota(name, self.topic_settings.plugin)

    @for_all(80, steps=STEPS)
    def test_it_answers_with_a_time_whatever_is_used(
        self, steps: list[tuple[bool, int, int, str | None, bool]]
    ) -> None:
        quota, mono_ms = self.guarded(), BEGIN_MS
        for writes, size, passed_ms, client_id, internal in steps:
            mono_ms += passed_ms
            client = RequestContext(client_id=client_id, internal=internal)
            self._ask(quota, Usage("t", 0, client, size * writes, size * (not writes), mono_ms))

    def test_a_client_that_waits_may_use_it_again(self) -> None:
        """One that waits whenever it is told to must not wait longer each time, for the same use."""
        quota, mono_ms, waits = self.guarded(), BEGIN_MS, []
        client = RequestContext(client_id="patient")
        for _ in range(200):
            wait_ms = self._ask(quota, Usage("t", 0, client, 100, 0, mono_ms))
            waits.append(wait_ms)
            mono_ms += wait_ms + 1
        if min(waits[-50:]) >= MAX_THROTTLE_MS:
            self.broken(
                f"throttle() holds a client that writes 100 bytes, and waits as long as it is told, back for"
                f" {waits[-1]} ms each time; let what was used be forgotten"
            )

    def test_a_long_pause_is_forgiven(self) -> None:
        quota = self.guarded()
        client = RequestContext(client_id="a")
        for _ in range(5):
            self._ask(quota, Usage("t", 0, client, 1_000, 0, BEGIN_MS))
        before = self._ask(self.guarded(), Usage("t", 0, client, 1, 0, BEGIN_MS))
        after = self._ask(quota, Usage("t", 0, client, 1, 0, BEGIN_MS + IDLE_MS))
        if after > before:
            self.broken(
                f"throttle() holds a client back for {after} ms a day after it used 5,000 bytes, and a new one for"
                f" {before} ms; let what was used be forgotten"
            )

    def test_clients_that_are_gone_take_no_memory(self) -> None:
        """Client ids are what clients say: each connection may bring another."""
        quota = self.guarded()
        with traced_memory() as memory:
            for number in range(CLIENTS):
                client = RequestContext(client_id=f"client-{number}-{'x' * 200}")
                self._ask(quota, Usage("t", 0, client, 1, 0, BEGIN_MS + number * 1_000))
        if memory.kept_bytes > KEPT_BYTES:
            self.broken(
                f"it keeps {memory.kept_bytes >> 10} kB of {CLIENTS:,} clients that came one a second; forget them"
            )

    # ------------------------------------------------------------ steps

    def _ask(self, quota: Quota, usage: Usage) -> int:
        with self.calling("throttle()"):
            return quota.throttle(usage)
