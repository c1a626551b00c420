"""What is wrong in a cluster: facts in, findings out. Pure. `cluster_facts` gathers, `cluster_check` shows.

What the coordination keeps is the measure of what the brokers say. Without a coordination, brokers are compared with
one another: of a partition the row with the largest leader epoch counts, of the rest what the controller says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from attrs import evolve, field, frozen

from logkernel.cli.partition_health import OFFLINE, UNDER_MIN_ISR, Ends, followers, state_of
from logkernel.client.admin.topics import PartitionDescription, TopicDescription
from logkernel.vocabulary import TopicPartition

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES: Final = (ERROR, WARNING, NOTE)
SHOWN: Final = 3
"""How many partitions or topics a finding names."""
EACH: Final = "{each}"
"""Where a finding names them."""


@frozen
class View:
    """What the coordination, or one broker, says. `brokers` are the addresses of each; a broker names one of them.
    `controller` is -1 without one."""

    cluster_id: str
    controller: int
    brokers: Mapping[int, tuple[str, ...]]
    topics: Mapping[str, TopicDescription]


@frozen
class Facts:
    views: Mapping[int, View]
    """What each broker says that answers."""
    silent: Mapping[int, str] = field(factory=dict)
    """Brokers that do not answer, and why."""
    kept: View | None = None
    """What the coordination keeps."""
    term: int = -1
    """The controller's epoch, -1 where it is not known."""
    epochs: Mapping[int, int] = field(factory=dict)
    """The broker epochs of those whose session lives."""
    deleting: tuple[str, ...] = ()
    """Topics that wait for their deletion."""
    min_isr: Mapping[str, int] = field(factory=dict)
    failed_directories: Mapping[int, Mapping[str, str]] = field(factory=dict)
    """Broker → directory → what is wrong with it."""
    ends: Ends = field(factory=dict)
    moving: Mapping[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]] = field(factory=dict)
    """Partition → replicas that are added, and removed."""

    @property
    def measure(self) -> View | None:
        """What the brokers are compared with; None where nobody said anything."""
        if self.kept is not None or not self.views:
            return self.kept
        named = [view.controller for view in self.views.values()]
        controller = max(sorted(set(named)), key=named.count)
        view = self.views.get(controller) or self.views[min(self.views)]
        return View(view.cluster_id, view.controller, view.brokers, _newest(view, self.views.values()))


@frozen
class Finding:
    """`passing`: an election or the like may explain it; only what is found again counts."""

    severity: str
    kind: str
    about: str
    says: str
    """With `EACH` where it names several."""
    remedy: str
    passing: bool = False
    each: Mapping[str, str] = field(factory=dict)
    """Partition, topic or broker → how it is named. What passes of one must not count as found again of another."""

    @property
    def what(self) -> str:
        return self.says.replace(EACH, _some(self.each.values()))

    def row(self) -> dict[str, str]:
        names = ("severity", "kind", "about", "what", "remedy")
        return {name: getattr(self, name) for name in names}


def find(facts: Facts, max_lag: int) -> list[Finding]:
    """All findings, the worst first. A follower in sync may be `max_lag` records behind."""
    measure = facts.measure
    if measure is None:
        return [Finding(ERROR, "no-brokers", "cluster", "no broker is registered", "start the brokers")]
    found = [
        *_brokers(facts, measure), *_controller(facts, measure), *_views(facts, measure), *_directories(facts),
        *_partitions(facts, measure, max_lag), *_under_way(facts),
    ]  # fmt: skip
    return sorted(found, key=lambda row: SEVERITIES.index(row.severity))


def lasting(before: Iterable[Finding], now: Iterable[Finding]) -> list[Finding]:
    """Those of now that may not pass, or were there before; of those that name several, what was named before."""
    known: dict[tuple[str, str], set[str]] = {}
    for row in before:
        known.setdefault((row.kind, row.about), set()).update(row.each)
    found = []
    for row in now:
        named = known.get((row.kind, row.about))
        each = {name: text for name, text in row.each.items() if named is not None and name in named}
        if not row.passing:
            found.append(row)
        elif named is not None and (each or not row.each):
            found.append(evolve(row, each=each))
    return found


def _newest(first: View, views: Iterable[View]) -> dict[str, TopicDescription]:
    """Each partition as the view with the largest leader epoch has it, and of those `first`."""
    newest: dict[TopicPartition, PartitionDescription] = {}
    for view in (first, *views):
        for name, row in _rows(view):
            if name not in newest or row.leader_epoch > newest[name].leader_epoch:
                newest[name] = row
    return {
        topic: TopicDescription(
            topic,
            told.id,
            told.internal,
            tuple(newest[TopicPartition(topic, row.partition)] for row in told.partitions),
        )
        for topic, told in first.topics.items()
    }


def _rows(view: View) -> Iterator[tuple[TopicPartition, PartitionDescription]]:
    for name, topic in sorted(view.topics.items()):
        for row in topic.partitions:
            yield TopicPartition(name, row.partition), row


def _some(names: Iterable[object]) -> str:
    words = [str(name) for name in names]
    rest = len(words) - SHOWN
    return ", ".join(words[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _by_name(names: Iterable[object]) -> dict[str, str]:
    return {str(name): str(name) for name in names}


def _ids(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(nodes)))


# ---------------------------------------------------------------- brokers


def _brokers(facts: Facts, measure: View) -> Iterator[Finding]:
    holders = {node for _, row in _rows(measure) for node in row.replicas}
    for node in sorted(holders - set(measure.brokers)):
        yield Finding(
            ERROR, "broker-down", f"broker {node}", "is not registered, and holds replicas",
            "start it; if it is gone for good, move its replicas: logkernel cluster reassignments --set",
            passing=True,
        )  # fmt: skip
    for node, why in sorted(facts.silent.items()):
        yield Finding(
            ERROR, "broker-unreachable", f"broker {node}", f"is registered, and does not answer ({why})",
            "see its process and its log; check that its advertised.listeners can be reached from here",
        )  # fmt: skip
    for node, view in sorted(facts.views.items()):
        if view.cluster_id != measure.cluster_id:
            yield Finding(
                ERROR, "cluster-id", f"broker {node}",
                f"is of cluster {view.cluster_id or 'without an id'}, not of {measure.cluster_id}",
                "another program answers at its address, or it joined another chroot; correct its settings",
            )  # fmt: skip


def _controller(facts: Facts, measure: View) -> Iterator[Finding]:
    if measure.controller < 0:
        yield Finding(
            ERROR, "no-controller", "cluster", "there is no controller: no leader is elected and no topic created",
            "check that brokers run and reach the coordination; their logs say why none was elected", passing=True,
        )  # fmt: skip
        return
    for node, view in sorted(facts.views.items()):
        if view.controller != measure.controller:
            named = "no controller" if view.controller < 0 else f"broker {view.controller} as the controller"
            yield Finding(
                ERROR, "controller-differs", f"broker {node}", f"names {named}, and it is {measure.controller}",
                "see its log: it does not hear of the coordination, or of the controller", passing=True,
            )  # fmt: skip


# ---------------------------------------------------------------- what brokers know


def _views(facts: Facts, measure: View) -> Iterator[Finding]:
    for node, view in sorted(facts.views.items()):
        yield from _members(node, view, measure)
        yield from _topics(node, view, measure)
        yield from _differences(node, view, measure)


def _behind(node: int, says: str, each: Mapping[str, str], kind: str = "metadata-behind") -> Finding:
    return Finding(
        WARNING, kind, f"broker {node}", says,
        "the controller tells brokers of changes: see its log, and that it reaches this broker's inter-broker listener;"
        " a restart of this broker has it told everything", passing=True, each=each,
    )  # fmt: skip


def _members(node: int, view: View, measure: View) -> Iterator[Finding]:
    if missing := set(measure.brokers) - set(view.brokers):
        yield _behind(node, f"does not know of broker {EACH}", _by_name(sorted(missing)), "broker-unknown")
    if gone := set(view.brokers) - set(measure.brokers):
        says = f"takes broker {EACH} for alive, which is not registered"
        yield _behind(node, says, _by_name(sorted(gone)), "broker-gone")
    for other in sorted(set(view.brokers) & set(measure.brokers)):
        wrong = set(view.brokers[other]) - set(measure.brokers[other])
        if wrong:
            yield Finding(
                WARNING, "endpoint-differs", f"broker {node}",
                f"says that broker {EACH} is at {_some(wrong)}, and it is registered at"
                f" {_some(measure.brokers[other])}",
                "check advertised.listeners; clients that ask this broker are sent to the wrong address", passing=True,
                each=_by_name([other]),
            )  # fmt: skip


def _topics(node: int, view: View, measure: View) -> Iterator[Finding]:
    if missing := sorted(set(measure.topics) - set(view.topics)):
        yield _behind(node, f"does not know of {EACH}", _by_name(missing), "topic-unknown")
    if gone := sorted(set(view.topics) - set(measure.topics)):
        yield _behind(node, f"knows of {EACH}, which does not exist", _by_name(gone), "topic-gone")
    for name in sorted(set(view.topics) & set(measure.topics)):
        mine, theirs = view.topics[name].id, measure.topics[name].id
        if mine.int and theirs.int and mine != theirs:
            yield Finding(
                ERROR, "topic-id", f"broker {node}", f"says that {EACH} has the id {mine}, and it is {theirs}",
                "the topic was deleted and created again, and this broker was not told; restart it", passing=True,
                each=_by_name([name]),
            )  # fmt: skip


def _differences(node: int, view: View, measure: View) -> Iterator[Finding]:
    """Partitions of which a broker says something else; by what is the worst in each."""
    told = dict(_rows(view))
    older: dict[str, str] = {}
    newer: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for partition, row in _rows(measure):
        mine, name = told.get(partition), str(partition)
        if mine is None or row.leader_epoch < 0:
            continue
        if mine.leader_epoch != row.leader_epoch:
            kind = older if mine.leader_epoch < row.leader_epoch else newer
            kind[name] = f"{name} (leader epoch {mine.leader_epoch}, and it is {row.leader_epoch})"
        elif mine.leader != row.leader and mine.leader >= 0:
            wrong[name] = f"{name} (leader {mine.leader}, and it is {row.leader}, both in epoch {row.leader_epoch})"
        elif mine.leader != row.leader:
            older[name] = f"{name} (no leader, and it is {row.leader})"
        else:
            for what, one, other in (
                ("replicas", mine.replicas, row.replicas), ("in sync", mine.isr, row.isr),
            ):  # fmt: skip
                if set(one) != set(other):
                    older[name] = f"{name} ({what} {_ids(one)}, and it is {_ids(other)})"
                    break
    if older:
        yield _behind(node, f"has older metadata of {EACH}", older)
    if newer:
        yield Finding(
            ERROR, "metadata-ahead", f"broker {node}", f"has newer metadata than the cluster keeps of {EACH}",
            "was the coordination restored from an old copy? Stop all brokers before anything is written",
            passing=True, each=newer,
        )  # fmt: skip
    if wrong:
        yield Finding(
            ERROR, "leader-differs", f"broker {node}", f"names another leader of {EACH}",
            "two controllers may have ordered; restart this broker, and compare again", passing=True, each=wrong,
        )  # fmt: skip


# ---------------------------------------------------------------- disks and partitions


def _directories(facts: Facts) -> Iterator[Finding]:
    for node, failed in sorted(facts.failed_directories.items()):
        for path, why in sorted(failed.items()):
            yield Finding(
                ERROR, "log-directory", f"broker {node}", f"log directory {path} is offline ({why})",
                "repair or replace the disk, then restart the broker: it copies what is missing",
            )  # fmt: skip


def _partitions(facts: Facts, measure: View, max_lag: int) -> Iterator[Finding]:
    for name, row in _rows(measure):
        least = facts.min_isr.get(name.topic, 1)
        state = state_of(row, least)
        lags = {one.id: one.lag for one in followers(name, row, facts.ends)}
        if state == OFFLINE:
            yield Finding(
                ERROR, state, str(name), f"has no leader (in sync were {_ids(row.isr) or 'none'}, replicas are"
                f" {_ids(row.replicas)})",
                f"start one of those that were in sync; if all of them are gone, and records may be lost: logkernel"
                f" cluster elect {name.topic}:{name.partition} --election unclean", passing=True,
            )  # fmt: skip
        elif state is not None:
            out = [node for node in row.replicas if node not in row.isr]
            behind = _some(f"broker {node} ({_lag(lags.get(node), node in measure.brokers)})" for node in out)
            few = state == UNDER_MIN_ISR
            yield Finding(
                ERROR if few else WARNING, state, str(name),
                f"lacks {behind}" + (f"; min.insync.replicas={least} refuses acks=all" if few else ""),
                "start what is down; a broker that runs copies by itself: its log says why if it does not",
                passing=True,
            )  # fmt: skip
        for node in row.isr:
            lag = lags.get(node)
            if lag is not None and lag > max_lag:
                yield Finding(
                    WARNING, "follower-lag", f"{name} on broker {node}", f"is in sync, and {lag} records behind",
                    "its disk, its network or num.replica.fetchers limit it; it leaves the in-sync replicas after"
                    " replica.lag.time.max.ms", passing=True,
                )  # fmt: skip


def _lag(lag: int | None, is_alive: bool) -> str:
    if not is_alive:
        return "down"
    return "lag not known" if lag is None else f"{lag} records behind"


def _under_way(facts: Facts) -> Iterator[Finding]:
    for topic in facts.deleting:
        yield Finding(
            NOTE, "deleting", topic, "waits for its deletion",
            "brokers that hold it have to be alive; it goes when they are",
        )  # fmt: skip
    for name, (adding, removing) in sorted(facts.moving.items()):
        yield Finding(
            NOTE, "reassigning", str(name), f"moves: adds {_ids(adding) or 'none'}, removes {_ids(removing) or 'none'}",
            f"wait, or cancel: logkernel cluster reassignments --cancel {name}",
        )  # fmt: skip
