"""`logkernel group list|describe|delete|reset-offsets|delete-offsets|remove-members`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from logkernel.cli import streams_groups
from logkernel.cli.connection import ConnectionOptions, connected, partitions, time_ms
from logkernel.cli.output import put_json, put_table
from logkernel.cli.parameters import AnyCase, IntRange
from logkernel.cli.topic_results import results_of
from logkernel.cli.topics import complain, named_partitions
from logkernel.cli.visible import say_if_empty
from logkernel.errors import (
    ConfigError,
    NonEmptyGroup,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from logkernel.vocabulary import GROUP_STATES, TopicPartition

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.groups import GroupDescription

NONE = "-"
TYPES = ("classic", "consumer", "share", "streams")
WITHOUT_MEMBERS = ("", "Empty", "Dead")
"""States of such groups; "" where the broker says none."""
COLUMNS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
SHARE_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG")
STATE_COLUMNS = ("GROUP", "COORDINATOR (ID)", "TYPE", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
EPOCH_COLUMNS = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH")


@click.command("list")
@click.option(
    "--state",
    "states",
    type=AnyCase(GROUP_STATES),
    multiple=True,
    help="Only groups in this state; repeatable.",
)
@click.option(
    "--type",
    "types",
    type=AnyCase(TYPES),
    multiple=True,
    help="Only groups of this type; repeatable.",
)
@connected
def list_(states: tuple[str, ...], types: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """List all groups."""
    with connection.admin() as admin:
        found = admin.list_groups(states, types)
        say_if_empty(found, admin, "group")
    if as_json:
        for row in found.values():
            put_json({"group": row.id, "type": row.type, "protocol": row.protocol_type, "state": row.state})
    else:
        rows = [(row.id, row.type, row.protocol_type, row.state) for row in found.values()]
        put_table(("GROUP", "TYPE", "PROTOCOL", "STATE"), rows)


@click.command
@click.argument("names", nargs=-1)
@click.option("--members", is_flag=True, help="Show the members and their partitions.")
@click.option("--state", is_flag=True, help="Show the coordinator, assignor and state, and what stops Streams groups.")
@click.option("--topology", is_flag=True, help="Show the subtopologies of Streams groups and their topics.")
@click.option("-v", "--verbose", is_flag=True, help="Also show epochs, and the target tasks of Streams groups.")
@connected
def describe(
    names: tuple[str, ...], members: bool, state: bool, topology: bool, verbose: bool, connection: ConnectionOptions,
    as_json: bool,
) -> int:  # fmt: skip
    """Describe groups NAMES, or all: offsets and lag, in the columns of kafka-consumer-groups.sh."""
    if members + state + topology > 1:
        raise click.UsageError("--members, --state and --topology exclude one another; give one of them")
    with connection.admin() as admin:
        wanted = list(names) or list(admin.list_groups())
        say_if_empty(wanted, admin, "group")
        results = results_of(lambda: admin.describe_groups(wanted), wanted) if wanted else {}
        groups = [row for row in results.values() if not isinstance(row, Exception)]
        if as_json or state:
            streams_groups.find_assignors(admin, groups)
        if as_json:
            for group in groups:
                put_json(_document(admin, group, _offsets(admin, group)))
        elif state and groups:
            _put_states(groups, verbose)
            streams_groups.put_problems(admin, groups)
        elif members and groups:
            _put_members(groups, verbose)
        elif topology:
            streams_groups.put_topologies(groups)
        else:
            for group in groups:
                _put_offsets(group, _offsets(admin, group))
    bad = {name: row for name, row in results.items() if isinstance(row, Exception)}
    for name, error in bad.items():
        complain(name, error)
    others = [row for row in groups if topology and names and not as_json and row.type != streams_groups.TYPE]
    for row in others:
        text = f"{row.id} is a {row.type} group, and only Streams groups have a topology; ask for its --members"
        click.echo(f"logkernel: {text}", err=True)
    return int(bool(bad or others))


def _offsets(admin: Admin, group: GroupDescription) -> list[dict[str, Any]]:
    """A row for each partition with a committed offset or an assigned member."""
    if group.type == "share":
        shares = admin.list_share_group_offsets(group.id)
        return [
            {"topic": name.topic, "partition": name.partition, "startOffset": row.offset, "lag": row.lag}
            for name, row in shares.items()
        ]
    committed = admin.list_consumer_group_offsets(group.id)
    readers = {name: member for member in group.members for name in member.assigned}
    ends = _ends(admin, sorted({*committed, *readers}))
    found = []
    for name in sorted({*committed, *readers}):
        at, end, reader = committed.get(name), ends.get(name), readers.get(name)
        found.append(
            {
                "topic": name.topic,
                "partition": name.partition,
                "currentOffset": None if at is None else at.offset,
                "logEndOffset": end,
                "lag": None if at is None or end is None else max(0, end - at.offset),
                "consumerId": None if reader is None else reader.id,
                "host": None if reader is None else reader.host,
                "clientId": None if reader is None else reader.client_id,
            }
        )
    return found


def _ends(admin: Admin, names: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The end offsets of partitions, without those of deleted topics."""
    if not names:
        return {}
    found = results_of(lambda: admin.list_offsets(dict.fromkeys(names, "latest")), names)
    rest = {name: row for name, row in found.items() if not isinstance(row, UnknownTopicOrPartition)}
    for row in rest.values():
        if isinstance(row, Exception):
            raise row
    return {name: row.offset for name, row in rest.items()}


def _put_offsets(group: GroupDescription, rows: list[dict[str, Any]]) -> None:
    if not rows:
        why = "; --state tells what stops it" if group.state == streams_groups.NOT_READY else ""
        click.echo(f"Group {group.id} is {group.state} and has no offsets{why}.", err=True)
        return
    columns = SHARE_COLUMNS if group.type == "share" else COLUMNS
    put_table(columns, [(group.id, *(NONE if cell is None else cell for cell in row.values())) for row in rows])


def _put_states(groups: list[GroupDescription], verbose: bool) -> None:
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        row = (group.id, group.coordinator, group.type, group.assignor or NONE, group.state, len(group.members))
        rows.append((*row, group.epoch, group.assignment_epoch) if verbose else row)
    put_table((*STATE_COLUMNS, *EPOCH_COLUMNS) if verbose else STATE_COLUMNS, rows)


def _put_members(groups: list[GroupDescription], verbose: bool) -> None:
    """Two tables, if some groups have tasks and others partitions."""
    others = [group for group in groups if group.type != streams_groups.TYPE]
    if len(others) < len(groups):
        streams_groups.put_members([group for group in groups if group not in others], verbose)
        if not others:
            return
    rows: list[tuple[Any, ...]] = []
    for group in others:
        for member in group.members:
            row = (
                group.id,
                member.id,
                member.instance_id or NONE,
                member.host,
                member.client_id,
                len(member.assigned),
                _partitions(member.assigned),
            )
            target = NONE if member.target is None else _partitions(member.target)
            rows.append((*row, member.epoch, target) if verbose else row)
    columns = ("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT")
    put_table((*columns, "MEMBER-EPOCH", "TARGET-ASSIGNMENT") if verbose else columns, rows)


def _partitions(names: tuple[TopicPartition, ...]) -> str:
    return ",".join(map(str, sorted(names))) or NONE


def _document(admin: Admin, group: GroupDescription, offsets: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "group": group.id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "epoch": group.epoch,
        **(streams_groups.document(admin, group) if group.type == streams_groups.TYPE else {}),
        "members": [
            {
                "consumerId": member.id,
                "instanceId": member.instance_id,
                "clientId": member.client_id,
                "host": member.host,
                "topics": member.topics,
                "partitions": sorted(map(str, member.assigned)),
                **(streams_groups.member_document(member.epoch, member.streams) if member.streams is not None else {}),
            }
            for member in group.members
        ],
        "offsets": offsets,
    }


@click.command
@click.argument("names", nargs=-1, required=True)
@connected
def delete(names: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> int:
    """Delete groups NAMES and their offsets. The groups must have no members."""
    with connection.admin(changes=True) as admin:
        results = results_of(lambda: admin.delete_groups(names), names)
    for name, result in results.items():
        if isinstance(result, Exception):
            complain(name, result)
        elif as_json:
            put_json({"group": name, "deleted": True})
        else:
            click.echo(f"Deleted group {name}.")
    return int(any(isinstance(result, Exception) for result in results.values()))


# ---------------------------------------------------------------- offsets


@click.command("reset-offsets")
@click.argument("name")
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:PARTITION,…]",
    multiple=True,
    help="Reset this topic or these partitions; repeatable.",
)
@click.option("--all-topics", is_flag=True, help="Reset every partition with a committed offset.")
@click.option("--to-earliest", is_flag=True, help="Reset to the first record.")
@click.option("--to-latest", is_flag=True, help="Reset to the end of the log.")
@click.option("--to-current", is_flag=True, help="Reset to the current offset, moved into the range of the log.")
@click.option("--to-offset", type=IntRange(0), help="Reset to this offset, moved into the range of the log.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="Reset to the first record at or after this time (ISO 8601, or ms since 1970).",
)
@click.option("--shift-by", type=int, help="Move by this many records, back if negative, within the range of the log.")
@click.option(
    "--execute/--dry-run", default=False, help="Reset the offsets, or only print the plan.  [default: --dry-run]"
)
@connected
def reset_offsets(
    name: str, topics: tuple[str, ...], all_topics: bool, to_earliest: bool, to_latest: bool, to_current: bool,
    to_offset: int | None, to_datetime: str | None, shift_by: int | None, execute: bool,
    connection: ConnectionOptions, as_json: bool,
) -> None:  # fmt: skip
    """Reset the offsets of group NAME, which must have no members."""
    hows = {"earliest": to_earliest, "latest": to_latest, "current": to_current}
    named = [how for how, given in hows.items() if given]
    if len(named) + sum(given is not None for given in (to_offset, to_datetime, shift_by)) != 1:
        raise click.UsageError(
            "the target is not clear; give one of --to-earliest, --to-latest, --to-current, --to-offset, --to-datetime,"
            " --shift-by"
        )
    if bool(topics) == all_topics:
        raise click.UsageError("the partitions are not clear; give either --topic or --all-topics")
    with connection.admin(changes=execute) as admin:
        group = admin.list_groups().get(name)
        kind = "" if group is None else group.type
        share = kind == "share"
        now = _current(admin, name, share)
        wanted = list(now) if all_topics else [TopicPartition(*row) for row in named_partitions(admin, topics)]
        if not wanted:
            raise ConfigError(f"group {name!r} has no offsets; name the topics with --topic")
        target = _targets(admin, wanted, now, named[0] if named else None, to_offset, to_datetime, shift_by)
        if execute:
            if share:
                admin.alter_share_group_offsets(name, target)
            else:
                _commit(admin, name, target)
    if as_json:
        for place_, offset in target.items():
            put_json(
                {"group": name, "topic": place_.topic, "partition": place_.partition, "newOffset": offset,
                 "done": execute}
            )  # fmt: skip
        return
    rows = [(name, place_.topic, place_.partition, offset) for place_, offset in target.items()]
    put_table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows)
    if not execute:
        busy = group is not None and group.state not in WITHOUT_MEMBERS
        first = "stop the group's members, then pass" if busy else "pass"
        click.echo(f"Nothing was changed; {first} --execute to reset the offsets.", err=True)
    elif kind == streams_groups.TYPE:
        click.echo(streams_groups.KEPT, err=True)


def _commit(admin: Admin, name: str, target: dict[TopicPartition, int]) -> None:
    """Raises `NonEmptyGroup` for what the protocol says of a group with members: that we are none."""
    try:
        admin.alter_consumer_group_offsets(name, target)
    except UnknownMemberId:
        raise NonEmptyGroup(f"{name}: the group has members; stop them first") from None


def _kind(admin: Admin, name: str) -> str:
    """The group's type; "" if there is no such group yet: its offsets can be set, too."""
    row = admin.list_groups().get(name)
    return "" if row is None else row.type


def _current(admin: Admin, name: str, share: bool) -> dict[TopicPartition, int]:
    if share:
        return {partition: row.offset for partition, row in admin.list_share_group_offsets(name).items()}
    return {partition: row.offset for partition, row in admin.list_consumer_group_offsets(name).items()}


def _targets(
    admin: Admin, wanted: list[TopicPartition], now: dict[TopicPartition, int], how: str | None,
    to_offset: int | None, to_datetime: str | None, shift_by: int | None,
) -> dict[TopicPartition, int]:  # fmt: skip
    first = _at(admin, wanted, "earliest")
    last = _at(admin, wanted, "latest")
    if how == "earliest":
        return first
    if how == "latest":
        return last
    if to_datetime is not None:
        found = admin.list_offsets(dict.fromkeys(wanted, time_ms(to_datetime)))
        return {name: last[name] if row is None else row.offset for name, row in found.items()}
    if to_offset is not None:
        raw = dict.fromkeys(wanted, to_offset)
    else:
        missing = [name for name in wanted if name not in now]
        if missing:
            raise ConfigError(
                f"the group has no offset of {missing[0]} to start from; use --to-earliest, --to-latest, --to-offset or"
                f" --to-datetime"
            )
        raw = {name: now[name] + (shift_by or 0) for name in wanted}
    return {name: min(max(offset, first[name]), last[name]) for name, offset in raw.items()}


def _at(admin: Admin, wanted: list[TopicPartition], spec: str) -> dict[TopicPartition, int]:
    found = admin.list_offsets(dict.fromkeys(wanted, spec))
    return {name: 0 if row is None else row.offset for name, row in found.items()}


@click.command("delete-offsets")
@click.argument("name")
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:PARTITION,…]",
    multiple=True,
    required=True,
    help="Delete the offsets of this topic or these partitions; repeatable.",
)
@connected
def delete_offsets(name: str, topics: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Delete the offsets that group NAME has of topics or partitions. A share group takes whole topics only."""
    with connection.admin(changes=True) as admin:
        if _kind(admin, name) == "share":
            parts = [partitions(text) for text in topics]
            if any(indexes is not None for _, indexes in parts):
                raise click.UsageError(
                    "a share group has offsets of whole topics only; give --topic without partitions"
                )
            admin.delete_share_group_offsets(name, [topic for topic, _ in parts])
        else:
            admin.delete_consumer_group_offsets(name, named_partitions(admin, topics))
    if as_json:
        put_json({"group": name, "topics": topics, "deleted": True})
    else:
        click.echo(f"Deleted the offsets of group {name} for {', '.join(topics)}.")


@click.command("remove-members")
@click.argument("name")
@click.option(
    "--instance-id",
    "instance_ids",
    multiple=True,
    help="Remove the static member with this group.instance.id; repeatable.",
)
@click.option("--member-id", "member_ids", multiple=True, help="Remove the member with this id; repeatable.")
@click.option("--all", "everyone", is_flag=True, help="Remove all members.")
@connected
def remove_members(
    name: str,
    instance_ids: tuple[str, ...],
    member_ids: tuple[str, ...],
    everyone: bool,
    connection: ConnectionOptions,
    as_json: bool,
) -> None:
    """Remove members from the classic group NAME; the group rebalances."""
    if bool(instance_ids or member_ids) == everyone:
        raise click.UsageError("the members are not clear; give either --all, or --instance-id and --member-id")
    with connection.admin(changes=True) as admin:
        if _kind(admin, name) == streams_groups.TYPE:
            raise ConfigError(f"{name} is a Streams group, whose members can't be removed; stop its instances")
        try:
            admin.remove_members_from_group(name, instance_ids=instance_ids, member_ids=member_ids)
        except UnsupportedVersion as error:
            raise ConfigError(str(error)) from None
    if as_json:
        put_json({"group": name, "removed": True})
    else:
        click.echo(f"Removed members from group {name}.")
