"""What `logkernel group describe` shows of Streams groups: topology, tasks, and what keeps one from running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logkernel.cli.output import put_table
from logkernel.errors import KafkaError

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.groups import GroupDescription
    from logkernel.client.admin.streams_groups import StreamsMember, StreamsTasks

NONE = "-"
TYPE = "streams"
ROLES = ("active", "standby", "warmup")
TOPOLOGY = ("GROUP", "TOPOLOGY-EPOCH", "SUBTOPOLOGY", "SOURCES", "REPARTITION-SOURCES", "SINKS", "CHANGELOGS")
MEMBERS = ("GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "HOST", "ACTIVE", "STANDBY", "WARM-UP")
EPOCHS = (
    "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH", "MEMBER-EPOCH", "TARGET-ACTIVE", "TARGET-STANDBY", "TARGET-WARM-UP",
)  # fmt: skip
NOT_READY, ASSIGNING = "NotReady", "Assigning"
OWN_ASSIGNOR, ASSIGNORS = "streams.assignor.name", "group.streams.assignors"
KEPT = "Internal topics and state stores stay as they are; docs/streams-groups.md says how to begin anew."


def find_assignors(admin: Admin, groups: list[GroupDescription]) -> None:
    """Give each Streams group the assignor that its settings choose, which its description has no field for. A broker
    without such settings has the one of the description."""
    for group in groups:
        if group.type == TYPE:
            try:
                own = _setting(admin, ("group", group.id), OWN_ASSIGNOR)
                listed = own or _setting(admin, ("broker", str(group.coordinator)), ASSIGNORS)
            except KafkaError:  # who may not see settings is not told the assignor
                group.assignor = ""
            else:
                group.assignor = listed.split(",")[0].strip() or group.assignor


def _setting(admin: Admin, resource: tuple[str, str], name: str) -> str:
    (entries,) = admin.describe_configs(resource, names=[name]).values()
    return (entries[name].value or "") if name in entries else ""


def put_topologies(groups: list[GroupDescription]) -> None:
    put_table(
        TOPOLOGY,
        [
            (
                group.id,
                group.topology.epoch,
                one.id,
                _names(one.source_topics),
                _names(topic.name for topic in one.repartition_source_topics),
                _names(one.repartition_sink_topics),
                _names(topic.name for topic in one.changelog_topics),
            )
            for group in groups
            if group.topology is not None
            for one in group.topology.subtopologies
        ],
    )


def put_members(groups: list[GroupDescription], verbose: bool) -> None:
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        for member in group.members:
            own = member.streams
            if own is None:
                continue
            row = (group.id, member.id, own.process_id, member.client_id, member.host, *_cells(own.tasks))
            more = (group.assignment_epoch, own.topology_epoch, member.epoch, *_cells(own.target_tasks))
            rows.append((*row, *more) if verbose else row)
    put_table((*MEMBERS, *EPOCHS) if verbose else MEMBERS, rows)


def _names(names: Any) -> str:
    return ",".join(names) or NONE


def _cells(tasks: StreamsTasks) -> list[str]:
    """Each role as kafka-streams-groups.sh writes it: `0:[0,1]; 1:[2]`."""
    return [
        "; ".join(f"{name}:[{','.join(map(str, numbers))}]" for name, numbers in _by_id(getattr(tasks, role)).items())
        or NONE
        for role in ROLES
    ]


def _by_id(places: tuple[tuple[str, int], ...]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, number in sorted(places):
        found.setdefault(name, []).append(number)
    return found


def problems(admin: Admin, group: GroupDescription) -> list[tuple[str, str]]:
    """(status, detail): what a member's heartbeat is told, as far as it shows in the group and in the topics."""
    topology = group.topology
    if topology is None:
        return []
    found: list[tuple[str, str]] = []
    stale = [one.id for one in group.members if one.streams is not None and one.streams.topology_epoch < topology.epoch]
    if stale:
        found.append(("STALE_TOPOLOGY", f"older than epoch {topology.epoch}: {', '.join(stale)}"))
    if group.state == NOT_READY:
        there = admin.list_topics()
        sources = {name for one in topology.subtopologies for name in one.source_topics}
        internal = {
            topic.name
            for one in topology.subtopologies
            for topic in (*one.repartition_source_topics, *one.changelog_topics)
        }
        for status, names in (("MISSING_SOURCE_TOPICS", sources), ("MISSING_INTERNAL_TOPICS", internal)):
            missing = sorted(names - there.keys())
            if missing:
                found.append((status, ", ".join(missing)))
                break  # what is made of others comes after them
        else:
            detail = (
                "numbers of partitions do not fit, or the members have not sent a heartbeat since the topics changed"
            )
            found.append(("INCORRECTLY_PARTITIONED_TOPICS", detail))
    if group.state == ASSIGNING:
        detail = f"tasks are assigned soon: for epoch {group.assignment_epoch} they are, for {group.epoch} not yet"
        found.append(("ASSIGNMENT_DELAYED", detail))
    return found


def put_problems(admin: Admin, groups: list[GroupDescription]) -> None:
    rows = [(group.id, *row) for group in groups for row in problems(admin, group)]
    if rows:
        put_table(("GROUP", "STATUS", "DETAIL"), rows)


def document(admin: Admin, group: GroupDescription) -> dict[str, Any]:
    """What JSON has besides what it has of every group."""
    topology = group.topology
    if topology is None:
        return {"assignmentEpoch": group.assignment_epoch, "topology": None, "problems": []}

    def told(topics: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": one.name,
                "partitions": one.partitions,
                "replicationFactor": one.replication_factor,
                "configs": dict(one.configs),
            }
            for one in topics
        ]

    return {
        "assignmentEpoch": group.assignment_epoch,
        "topology": {
            "epoch": topology.epoch,
            "subtopologies": [
                {
                    "id": one.id,
                    "sourceTopics": list(one.source_topics),
                    "repartitionSourceTopics": told(one.repartition_source_topics),
                    "repartitionSinkTopics": list(one.repartition_sink_topics),
                    "changelogTopics": told(one.changelog_topics),
                }
                for one in topology.subtopologies
            ],
        },
        "problems": [{"status": status, "detail": detail} for status, detail in problems(admin, group)],
    }


def member_document(epoch: int, member: StreamsMember) -> dict[str, Any]:
    def told(tasks: StreamsTasks) -> dict[str, list[str]]:
        return {role: [f"{name}_{number}" for name, number in getattr(tasks, role)] for role in ROLES}

    return {
        "processId": member.process_id,
        "memberEpoch": epoch,
        "topologyEpoch": member.topology_epoch,
        "endpoint": None if member.endpoint is None else f"{member.endpoint[0]}:{member.endpoint[1]}",
        "clientTags": dict(member.client_tags),
        "tasks": told(member.tasks),
        "targetTasks": told(member.target_tasks),
    }
