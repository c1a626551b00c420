"""Groups of Kafka Streams: what heartbeats may say, members that take over tasks, offsets, other protocols."""

from __future__ import annotations

from typing import Any

from logkernel.requests.streams_groups import Subtopology, Topology

from .asks import Steps

ALL = {"0": range(4)}
ALONE: dict[str, dict[str, Any]] = {
    "static": {"instance_id": "i"},
    "empty rack": {"rack_id": ""},
    "no process": {"process_id": None},
    "no timeout": {"rebalance_timeout_ms": -1},
    "no topology": {"topology": None},
    "no word of tasks": {"active": None},
    "no word of standbys": {"standby_tasks": None},
    "tasks": {"active": ALL},
    "standbys": {"standby": ALL},
    "warm-ups": {"warmup": ALL},
    "task offsets": {"task_offsets": []},
    "task end offsets": {"task_end_offsets": []},
}
"""What a member may not bring, beside `no process`."""
HELD: dict[str, dict[str, Any]] = {
    "an unknown subtopology": {"active": {"7": [0]}},
    "an unknown subtopology without tasks": {"active": {"7": []}},
    "unknown tasks": {"active": {"0": [0, 9, 4, 5]}},
    "a task below 0": {"active": {"0": [-1]}},
    "an unknown standby": {"active": {}, "standby": {"7": [0]}},
    "a warm-up": {"active": {}, "warmup": ALL},
    "active tasks alone": {"active_tasks": []},
    "all": {"active": ALL},
    "nothing": {},
}


def nobodys_streams_group(do: Steps) -> None:
    do.create("st", 4)
    do.streams_described("streams of nobody", "st-g")
    do.streams_described("streams of no name", "")
    do.streams_beat("streams beat of nobody", "st-g", "m1", 3)
    do.streams_beat("streams leave of nobody", "st-g", "m1", -1)
    do.streams_beat("streams static leave", "st-g", "m1", -2)
    do.streams_beat("streams epoch -3", "st-g", "m1", -3)
    do.streams_join("streams no name", "", "m1", "st")
    do.streams_join("streams no member", "st-g", "", "st")
    for what, more in ALONE.items():
        do.streams_join(f"streams joins with {what}", f"st-{what}", "m1", "st", **more)
    do.streams_join("streams no subtopology", "st-empty", "m1")
    do.streams_join("streams reads an internal topic", "st-internal", "m1", "__consumer_offsets")
    do.streams_join("streams reads a topic that can't be", "st-bad", "m1", "a b")
    sink = Topology(0, [Subtopology("0", ["st"], repartition_sink_topics=["__consumer_offsets"])])
    do.streams_join("streams writes to an internal topic", "st-sink", "m1", topology=sink)
    do.streams_join("streams member of control characters", "st-blank", "\0\t", "st")
    do.streams_join("streams reads no topic", "st-missing", "m1", "nope", "nope-2")


def streams_members(do: Steps) -> None:
    do.streams_join("streams joins", "st-g", "m1", "st")
    for what, more in HELD.items():
        do.streams_beat(f"streams holds {what}", "st-g", "m1", 2, **more)
    for epoch in (1, 3, 99):
        do.streams_beat(f"streams beats at {epoch}", "st-g", "m1", epoch)
    do.streams_beat("streams topology later", "st-g", "m1", 2, topology=Topology())
    do.streams_join("streams joins with another topology", "st-g", "m2", "st", "u", process="p2")
    do.streams_join("streams joins with a newer topology", "st-g", "m2", "st", "u", process="p2", epoch=1)
    do.streams_join("streams second joins", "st-g", "m2", "st", process="p2")
    do.streams_beat("streams first says nothing", "st-g", "m1", 2)
    do.streams_beat("streams first is slow", "st-g", "m1", 2, active=ALL)
    do.streams_beat("streams second waits", "st-g", "m2", 3, active={})
    do.streams_described("streams revokes", "st-g")
    do.streams_beat("streams first gives up", "st-g", "m1", 2, active={"0": [0, 1]})
    do.streams_beat("streams first at its former epoch", "st-g", "m1", 2, active={"0": [0, 1]})
    do.streams_beat("streams second takes over", "st-g", "m2", 3, active={})
    do.streams_described("streams is stable", "st-g")


def streams_in_use(do: Steps) -> None:
    do.commit("streams member commits", "st-g", 3, "m1", topic="st")
    do.commit("streams member commits at its former epoch", "st-g", 2, "m1", topic="st")
    do.commit("streams member commits what it gave up", "st-g", 2, "m1", topic="st", partition=3)
    do.commit("streams member commits without an epoch", "st-g", -1, "m1", topic="st")
    do.commit("streams operator commits", "st-g", topic="st")
    do.commit("streams operator commits no topic", "st-g", topic="nope")
    do.commit("streams operator commits no partition", "st-g", topic="st", partition=9)
    do.offset_delete("streams offsets in use", "st-g", ("st", 0))
    do.deleted("streams is in use", "st-g")
    do.described("streams described as a classic group", "st-g")
    do.listed("streams listed", types=["streams"], states=["Stable"])
    do.join("streams joined as a classic group", "st-g")
    do.consumer_beat("streams joined as a consumer group", "st-g", "m3", 0, "t", held=(), rebalance_ms=1000)
    do.share_beat("streams joined as a share group", "st-g", "AAAAAAAAAAAAAAAAAAAAAQ", 0, "t")


def streams_go(do: Steps) -> None:
    do.streams_beat("streams asks for a shutdown", "st-g", "m1", 3, shutdown_application=True)
    do.streams_beat("streams is told of it", "st-g", "m2", 3)
    do.streams_beat("streams leaves", "st-g", "m1", -1)
    do.streams_beat("streams leaves again", "st-g", "m1", -1)
    do.streams_beat("streams has all", "st-g", "m2", 3, active={"0": [2, 3]})
    do.streams_beat("streams last leaves", "st-g", "m2", -1)
    do.streams_described("streams is empty", "st-g")
    do.commit("streams operator commits for an empty group", "st-g", topic="st")
    do.deleted("streams is deleted", "st-g")
    do.streams_described("streams after", "st-g")


STREAMS_GROUPS = (nobodys_streams_group, streams_members, streams_in_use, streams_go)
