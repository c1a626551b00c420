"""Writes docs/share-groups.md, its diagrams from the machines' tables: `python docs/generate_share_groups.py`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from textwrap import wrap

from logkernel.plugins.services import shares
from logkernel.plugins.services.shares.members import group
from logkernel.plugins.services.shares.members.records import Key, Kind, MemberValue
from logkernel.plugins.services.shares.partitions import partition

PAGE = Path(__file__).with_name("share-groups.md")

TEXT = """\
# Share groups

Written by `docs/generate_share_groups.py`; a test fails when it is stale.

A share group (KIP-932) reads topics as queues. Its members share partitions. Each record goes to one member at a
time, and is done when that member accepts it.

Use `KafkaShareConsumer` or librdkafka's share consumer; both work unchanged. A new group starts at the latest offset.
To start elsewhere, set it for the group:

    kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type groups --entity-name jobs \\
      --add-config share.auto.offset.reset=earliest

The [settings](configuration.md#groups) of a share group are `share.auto.offset.reset`, `share.isolation.level`,
`share.record.lock.duration.ms`, `share.delivery.count.limit`, `share.partition.max.record.locks`,
`share.heartbeat.interval.ms`, `share.session.timeout.ms`, `share.assignment.interval.ms`,
`share.renew.acknowledge.enable`. Within the interval after an assignment (1 s by default) no other is made: a member
that joins has no partitions until a heartbeat after that.

## Three services

The services know one another by requests only, so in a cluster they may run on different brokers.

```mermaid
flowchart LR
    member([member]) -- ShareGroupHeartbeat --> groups[share-groups]
    member -- ShareFetch, ShareAcknowledge --> partitions[share-partitions]
    groups -- InitializeShareGroupState, DeleteShareGroupState, ReadShareGroupStateSummary --> state[share-state]
    groups -- ForgetShare --> partitions
    partitions -- ReadShareGroupState, WriteShareGroupState --> state
    partitions -- Fetch, ListOffsets --> broker[the broker]
    groups --- consumer_offsets[(__consumer_offsets)]
    state --- share_state[(__share_group_state)]
```

{services}

## A record in flight

{record}

- **Too many deliveries.** After `share.delivery.count.limit` deliveries, a record that would become AVAILABLE becomes
  ARCHIVED.
- **A record that always fails** should not take its neighbours with it. Records that have been delivered half as often
  as the limit allows (and at least twice) are delivered in smaller and smaller parts, and alone the last time.
- **The start offset** moves past records at the front that are ACKNOWLEDGED or ARCHIVED. Between it and the last
  acquired record there are at most `share.partition.max.record.locks` records.
- **A crash.** An acknowledgement is written to `__share_group_state` before it is answered. An acquisition is not
  written: after a crash, a record has the delivery count of its last release, timeout or acknowledgement.

## A group

{group}

The answer to a member's first heartbeat has its partitions; in Kafka a later answer has them.
"""


def diagram(table: Mapping[tuple[Enum, Enum], Enum], start: Enum) -> str:
    """A mermaid state diagram: events between the same two states share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (before, event), after in table.items():
        label = event.value if isinstance(event.value, str) else event.name.lower()
        arrows.setdefault((before.name, after.name), []).append(label)
    lines = [f"    [*] --> {start.name}"]
    lines += [f"    {before} --> {after}: {', '.join(labels)}" for (before, after), labels in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def services() -> str:
    """A list: what each service answers, and where it keeps its state."""
    lines = []
    for declared in shares.logkernel_services():
        names = ", ".join(name.removesuffix("Request") for name in declared.requests)
        extends = ", ".join(name.removesuffix("Request") for name in declared.extends)
        kept = f"in `{declared.topic.name}`" if declared.topic else "in memory"
        words = f"`{declared.name}` keeps its state {kept} and answers {names}."
        words += f" It adds to the answers of {extends}." if extends else ""
        lines += wrap(words, 110, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)


class GroupEvent(Enum):
    JOINED = "a member joins"
    LAST_LEFT = "the last member leaves"


def group_transitions() -> dict[tuple[Enum, Enum], Enum]:
    """How the state of a group follows its members, by folding their records."""
    one, key = group.Group("g"), Key(Kind.MEMBER, "g", "m")
    before = one.state
    one.fold(key, MemberValue(None, "client", "host", ("t",)))
    joined = one.state
    one.fold(key, None)
    return {(before, GroupEvent.JOINED): joined, (joined, GroupEvent.LAST_LEFT): one.state}


def page() -> str:
    return (
        TEXT.replace("{services}", services())
        .replace("{record}", diagram(partition.TRANSITIONS, partition.State.AVAILABLE))
        .replace("{group}", diagram(group_transitions(), group.State.EMPTY))
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
