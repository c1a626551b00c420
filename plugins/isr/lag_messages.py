"""ISR policy `messages`: a replica more than `replica.lag.max.messages` behind is not in sync; Kafka's before 0.9.

With replica.lag.max.messages=4000 and replica.lag.time.max.ms=30000:

| offsets behind | fetched last | in sync |
|---|---|---|
| 0 | any time ago | yes |
| 1 to 4000 | at most 30 s ago | yes, whether it ever catches up or not |
| 1 to 4000 | earlier | no: it is stuck |
| 4001 or more | any time ago | no: it is slow |
| unknown | at most 30 s ago | yes: it did not fetch in this leader epoch yet |
| unknown | earlier | no |

A burst of more records than that, in one batch even, takes every follower out of the ISR for a moment. That is why
Kafka gave this policy up. It fits topics with a steady, known rate, and says how many records a failover may cost
readers of other replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import LONG, Between
from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.hookspecs import hookimpl

MAX_MESSAGES: Final = "replica.lag.max.messages"
DEFAULT: Final = 4_000


class LagMessages:
    """`contracts.IsrPolicy`; stateless."""

    def __init__(self, max_messages: int = DEFAULT) -> None:
        self.max_messages = max_messages

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        lag = follower.lag_records
        if lag == 0:
            return True
        if lag is not None and lag > self.max_messages:
            return False
        return follower.fetched_ms <= follower.lag_time_max_ms


@hookimpl
def logkernel_isr(name: str, settings: Mapping[str, Any]) -> IsrPolicy | None:
    return LagMessages(settings.get(MAX_MESSAGES, DEFAULT)) if name == "messages" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("isr", "messages")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [
        Setting(
            MAX_MESSAGES, LONG, str(DEFAULT), Between(0),
            "With isr=messages, the number of records by which a replica may lag behind its leader and be in sync.",
            scope=TOPIC, own=True,
        ),
    ]  # fmt: skip
