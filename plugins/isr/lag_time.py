"""ISR policy `time`: a member that was not caught up for `replica.lag.time.max.ms` leaves; Apache Kafka's since 0.9.

| is it a member? | offsets behind | caught up last | in sync |
|---|---|---|---|
| yes | 0 | any time ago | yes: it may be idle, with nothing to fetch |
| yes | some | at most replica.lag.time.max.ms ago | yes, however far it is behind |
| yes | some | earlier | no: it is stuck, or slower than the writers |
| no | any | any time ago | yes: it holds all that is committed, which is all that Kafka asks |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.hookspecs import hookimpl


class LagTime:
    """`contracts.IsrPolicy`; stateless."""

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        return not follower.is_member or follower.lag_records == 0 or follower.caught_up_ms <= follower.lag_time_max_ms


@hookimpl
def logkernel_isr(name: str, settings: Mapping[str, Any]) -> IsrPolicy | None:
    return LagTime() if name == "time" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("isr", "time")]
