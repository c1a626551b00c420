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

A share group (KIP-932) reads topics as queues: its members share partitions, each record goes to one of them at a
time, and is taken off by being accepted. `KafkaShareConsumer` and librdkafka's share consumer work unchanged. A new
group begins at the latest offset; let it begin elsewhere by a setting of the group:

    kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type groups --entity-name jobs \\
      --add-config share.auto.offset.reset=earliest

[Settings](configuration.md#groups) of one group: `share.auto.offset.reset`, `share.isolation.level`,
`share.record.lock.duration.ms`, `share.delivery.count.limit`, `share.partition.max.record.locks`,
`share.heartbeat.interval.ms`, `share.session.timeout.ms`, `share.renew.acknowledge.enable`.

## Three services

Each knows the others by their requests alone, so that in a cluster they may live on different brokers.

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

A delivery that ends as AVAILABLE ends as ARCHIVED instead once the record was delivered `share.delivery.count.limit`
times. So that one record that always fails takes no others with it, what was delivered half as often as it may be
(and twice at least) comes in ever smaller parts, and alone the last time. What is ACKNOWLEDGED or ARCHIVED at the
front moves the start offset; at most `share.partition.max.record.locks` records lie between it and the last acquired
one. A member's word is written to `__share_group_state` before it is answered. That a record was acquired is not
written: after a crash its delivery count is what it was when it was last released, timed out or acknowledged.

## A group

{group}

A member is told its partitions in the answer to its first heartbeat; Kafka tells them in a later one.
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
