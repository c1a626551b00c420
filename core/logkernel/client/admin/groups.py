"""Groups of every kind: classic, consumer (KIP-848), share (KIP-932), streams (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.client.admin.plans import (
    Ask,
    Plan,
    ask,
    at_brokers,
    in_rows,
    row_error,
    several,
    values_or_raise,
)
from logkernel.client.admin.streams_groups import StreamsMember, StreamsTopology, member_of, read_by, topology_of
from logkernel.client.membership.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from logkernel.errors import GroupIdNotFound, InvalidRequest, KafkaError, UnsupportedVersion
from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
)
from logkernel.requests.share_groups import ShareGroupDescribeRequest
from logkernel.requests.streams_groups import StreamsGroupDescribeRequest
from logkernel.vocabulary import TopicPartition

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
STICKY = "sticky"
"""The assignor of Streams groups, which the protocol has no field for."""
DEAD = "Dead"
_NOT_THIS_KIND = (GroupIdNotFound.code, UnsupportedVersion.code)
"""Brokers without a type of group answer the second for all its groups."""
REASON = "the member was removed by an operator"


@frozen
class GroupListing:
    """`type` is classic, consumer, share or streams; "" if the broker does not say."""

    id: str
    type: str
    state: str
    protocol_type: str


@mutable
class GroupMember:
    """`epoch` is -1 in a classic group; `target` is what a member of a consumer or Streams group moves to.

    A member of a Streams group has the partitions that its active tasks read.
    """

    id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None = None
    epoch: int = -1
    topics: tuple[str, ...] = ()
    """Topics that it subscribes to."""
    assigned: tuple[TopicPartition, ...] = ()
    target: tuple[TopicPartition, ...] | None = None
    streams: StreamsMember | None = None
    """Its tasks, of a member of a Streams group."""


@mutable
class GroupDescription:
    """`assignor` is "" while there is none; epochs are -1 in a classic group."""

    id: str
    type: str
    state: str
    assignor: str
    members: list[GroupMember] = field(factory=list)
    epoch: int = -1
    assignment_epoch: int = -1
    protocol_type: str = ""
    coordinator: int = -1
    """The id of the broker that coordinates it."""
    topology: StreamsTopology | None = None
    """Of a Streams group, once a member has brought it."""


def list_groups(states: Iterable[str] = (), types: Iterable[str] = ()) -> Plan[dict[str, GroupListing]]:
    """Return the groups of all brokers by id; only those in these states and of these types, if given."""
    request = ListGroupsRequest(list(states), list(types))
    found: dict[str, GroupListing] = {}
    for response in (yield from at_brokers(request)).values():
        if response.error_code:
            raise row_error(response, "groups") or KafkaError()
        for row in response.groups:
            found[row.group_id] = GroupListing(row.group_id, row.group_type.lower(), row.group_state, row.protocol_type)
    return dict(sorted(found.items()))


def describe_groups(groups: str | Iterable[str]) -> Plan[dict[str, GroupDescription]]:
    """Return groups of any type by id. Raises `GroupIdNotFound`, `InvalidGroupId`."""
    wanted: list[str] = several(groups)
    found: dict[str, GroupDescription | Exception] = {}
    for make, made in (
        (ConsumerGroupDescribeRequest, _consumer),
        (DescribeGroupsRequest, _classic),
        (ShareGroupDescribeRequest, _share),
        (StreamsGroupDescribeRequest, _streams),
    ):
        left = [group for group in wanted if isinstance(found.get(group, GroupIdNotFound()), GroupIdNotFound)]
        asks = [Ask(make([group]), ("group", group), in_rows("groups")) for group in left]
        outcomes = yield asks
        for group, asked, outcome in zip(left, asks, outcomes, strict=True):
            described = found[group] = _description(group, outcome, made)
            if isinstance(described, GroupDescription):
                described.coordinator = asked.node
    return values_or_raise({group: found[group] for group in wanted})


def _description(group: str, outcome: Any, made: Any) -> GroupDescription | Exception:
    if isinstance(outcome, UnsupportedVersion):
        return GroupIdNotFound(f"there is no group {group!r}; check the name")
    if isinstance(outcome, Exception):
        return outcome
    row = next((row for row in outcome.groups if row.group_id == group), None)
    if row is None or row.group_state == DEAD or row.error_code in _NOT_THIS_KIND:
        return GroupIdNotFound(f"there is no group {group!r}; check the name")
    found: GroupDescription | Exception = row_error(row, group) or made(row)
    return found


def _consumer(row: Any) -> GroupDescription:
    members = [
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rack_id,
            member.member_epoch,
            tuple(member.subscribed_topic_names),
            _places(member.assignment),
            _places(member.target_assignment),
        )
        for member in row.members
    ]
    return GroupDescription(
        row.group_id, CONSUMER, row.group_state, row.assignor_name, members, row.group_epoch, row.assignment_epoch,
        PROTOCOL_TYPE,
    )  # fmt: skip


def _share(row: Any) -> GroupDescription:
    members = [
        GroupMember(
            member.member_id,
            None,
            member.client_id,
            member.client_host,
            member.rack_id,
            member.member_epoch,
            tuple(member.subscribed_topic_names),
            _places(member.assignment),
        )
        for member in row.members
    ]
    return GroupDescription(
        row.group_id, SHARE, row.group_state, row.assignor_name, members, row.group_epoch, row.assignment_epoch, SHARE
    )


def _streams(row: Any) -> GroupDescription:
    topology = topology_of(row.topology)
    subtopologies = topology.subtopologies if topology is not None else ()
    topics = tuple(sorted({name for one in subtopologies for name in one.sources}))
    members: list[GroupMember] = []
    for told in row.members:
        streams = member_of(told)
        members.append(
            GroupMember(
                told.member_id,
                told.instance_id,
                told.client_id,
                told.client_host,
                told.rack_id,
                told.member_epoch,
                topics,
                read_by(streams.tasks, topology),
                read_by(streams.target_tasks, topology),
                streams,
            )
        )
    return GroupDescription(
        row.group_id, STREAMS, row.group_state, STICKY, members, row.group_epoch, row.assignment_epoch, STREAMS,
        topology=topology,
    )  # fmt: skip


def _places(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


def _classic(row: Any) -> GroupDescription:
    members = [_classic_member(member, row.protocol_type) for member in row.members]
    return GroupDescription(
        row.group_id, CLASSIC, row.group_state, row.protocol_data, members, protocol_type=row.protocol_type
    )


def _classic_member(row: Any, protocol_type: str) -> GroupMember:
    member = GroupMember(row.member_id, row.group_instance_id, row.client_id, row.client_host)
    if protocol_type == PROTOCOL_TYPE:
        try:
            if row.member_metadata:
                member.topics = tuple(decode_subscription(row.member_metadata).topics)
            member.assigned = tuple(decode_assignment(row.member_assignment))
        except InvalidRequest:
            pass  # a member that leaves other bytes there has no partitions that could be told
    return member


def delete_groups(groups: str | Iterable[str]) -> Plan[None]:
    """Delete groups without members, and their offsets. Raises `NonEmptyGroup`, `GroupIdNotFound`."""
    wanted: list[str] = several(groups)
    outcomes = yield [Ask(DeleteGroupsRequest([group]), ("group", group), in_rows("results")) for group in wanted]
    values_or_raise({group: _first(outcome, "results", group) for group, outcome in zip(wanted, outcomes, strict=True)})


def _first(outcome: Any, rows: str, name: str) -> Any:
    if isinstance(outcome, Exception):
        return outcome
    return next((row_error(row, name) or row for row in getattr(outcome, rows)), None)


def remove_members_from_group(
    group: str,
    *,
    instance_ids: str | Iterable[str] = (),
    member_ids: str | Iterable[str] = (),
    reason: str = REASON,
) -> Plan[None]:
    """Remove members from a classic group, static ones by instance id; without any id, all of them (KIP-345).

    Raises `UnknownMemberId`, `GroupIdNotFound`.
    """
    statics: list[str] = several(instance_ids)
    dynamics: list[str] = several(member_ids)
    if not statics and not dynamics:
        description = (yield from describe_groups(group))[group]
        statics = [member.instance_id for member in description.members if member.instance_id is not None]
        dynamics = [member.id for member in description.members if member.instance_id is None]
    members = [MemberIdentity("", name, reason) for name in statics]
    members += [MemberIdentity(member_id, None, reason) for member_id in dynamics]
    if not members:
        return
    response = yield from ask(LeaveGroupRequest(group, "", members), ("group", group))
    told: dict[str, Any] = {}
    for row in response.members:
        name = row.group_instance_id if row.group_instance_id in statics else row.member_id
        told[name] = row_error(row, name) or row
    values_or_raise(told)


def rows_of_topics(topics: Sequence[Any], name: str = "name") -> Mapping[TopicPartition, Any]:
    """Partition → row, of a response's topics with `partitions`."""
    return {
        TopicPartition(getattr(topic, name), row.partition_index): row for topic in topics for row in topic.partitions
    }
