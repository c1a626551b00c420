"""What every assignor promises to the groups that it serves: each partition has one reader, who subscribes to it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from hypothesis import strategies as st

from logkernel.contracts import Assignor, GroupFacts, Subscriber
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown

Part = tuple[UUID, int]
Found = dict[str, set[Part]]
TOPICS = tuple(UUID(int=number) for number in (1, 2, 3))
DELETED = (UUID(int=9), 0)
"""Of a topic that a member had read, and that is gone."""


@st.composite
def groups(draw: st.DrawFn) -> GroupFacts:
    """A group of one to six members, with what each had before."""
    names = sorted(draw(st.sets(st.sampled_from([f"m{number}" for number in range(9)]), min_size=1, max_size=6)))
    subscriptions = st.frozensets(st.sampled_from(TOPICS))
    alike = draw(subscriptions) if draw(st.booleans()) else None
    topics = {name: draw(subscriptions) if alike is None else alike for name in names}
    sizes = {topic: draw(st.integers(1, 7)) for topic in TOPICS if any(topic in one for one in topics.values())}
    before: dict[str, set[Part]] = {name: set() for name in names}
    for topic in TOPICS:
        for number in range(draw(st.integers(0, 7))):
            before[draw(st.sampled_from(names))].add((topic, number))
    if draw(st.booleans()):
        before[names[0]].add(DELETED)
    racks, instances = st.none() | st.sampled_from("ab"), st.booleans()
    members = {
        name: Subscriber(topics[name], frozenset(before[name]), name.upper() if draw(instances) else None, draw(racks))
        for name in names
    }
    return GroupFacts(members, sizes)


class AssignorContract(Kit[Assignor]):
    """`logkernel.contracts.Assignor`."""

    kind = "assignor"
    methods = ("name", "assign")

    def provide(self, kernel: Kernel, name: str) -> Assignor:
        return kernel.assignor(name)

    def test_it_has_the_name_that_members_ask_for(self) -> None:
        """A member chooses an assignor by the name in its heartbeat."""
        found = self.make().name
        if not isinstance(found, str) or not found or (self.name and found != self.name):
            self.broken(f"its attribute `name` is {found!r}; make it the name that logkernel_names lists")

    @for_all(60, group=groups())
    def test_every_partition_has_one_reader_that_subscribes(self, group: GroupFacts) -> None:
        """The groups service refuses other results."""
        self._assign(group)

    @for_all(30, group=groups())
    def test_equal_groups_get_equal_assignments(self, group: GroupFacts) -> None:
        """Each broker that comes to lead the group computes it again."""
        once, again = self._assign(group), self._assign(group)
        if once != again:
            self.broken(
                f"assign() gave {shown(once)}, then {shown(again)} to the same group; depend on the facts alone"
            )

    @for_all(30, group=groups())
    def test_a_group_in_which_nothing_changes_keeps_its_assignment(self, group: GroupFacts) -> None:
        """Each move stops a reader until another took over."""
        first = self._assign(group)
        members = {
            name: Subscriber(one.topics, frozenset(first[name]), one.instance_id, one.rack_id)
            for name, one in group.members.items()
        }
        again = self._assign(GroupFacts(members, group.partitions))
        if again != first:
            moved = sum(len(first[name] - again[name]) for name in first)
            self.broken(f"assign() moves {moved} partitions of a group that has just what assign() gave it; keep them")

    def _assign(self, group: GroupFacts) -> Found:
        with self.calling("assign()"):
            given_back = self.make().assign(group)
            if not isinstance(given_back, Mapping):
                self.broken(f"assign() returned {shown(given_back)}; return a mapping of member id to its partitions")
            rows = {name: list(parts) for name, parts in given_back.items()}
        for name, parts in rows.items():
            if name not in group.members:
                self.broken(f"assign() gave {shown(parts)} to {name!r}, which is no member of {sorted(group.members)}")
            for part in parts:
                self._judge(group, name, part)
        flat = [part for parts in rows.values() for part in parts]
        if len(set(flat)) < len(flat):
            twice = next(part for part in flat if flat.count(part) > 1)
            self.broken(f"assign() gave the partition {twice} twice; give each to one member")
        wanted = {(topic, number) for topic, size in group.partitions.items() for number in range(size)}
        if missed := wanted - set(flat):
            self.broken(f"assign() gave {len(missed)} of {len(wanted)} partitions to nobody, e.g. {min(missed)}")
        return {name: set(rows.get(name, ())) for name in group.members}

    def _judge(self, group: GroupFacts, name: str, part: Part) -> None:
        topic, number = part
        if topic not in group.members[name].topics:
            self.broken(f"assign() gave {name!r} a partition of the topic {topic}, to which it does not subscribe")
        if not 0 <= number < group.partitions[topic]:
            self.broken(f"assign() gave out partition {number} of a topic that has {group.partitions[topic]}")
