"""The parts of an operation of the admin client. Pure.

A plan is a generator. It yields a round of requests (`Ask`), is sent their outcomes in the same order (a response, or
the exception that ended the attempt), and returns the operation's result. It may yield a `Pause` before it asks again.
`machine` runs plans; attempts, deadlines, back-off and coordinators are those of `client.cluster.calls`.

If an operation on several things fails for some, it raises the error of the first; `results` hold those of each.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from attrs import define

from logkernel.client.cluster.calls import ANY, CONTROLLER, Target, Verdict, no_error
from logkernel.client.cluster.permissions import request_name
from logkernel.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    LeaderNotAvailable,
    NotController,
    NotCoordinator,
    RequestTimedOut,
    ThrottlingQuotaExceeded,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    error_for,
    no_partition,
)
from logkernel.peer.network import NONE
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.vocabulary import TopicPartition

__all__ = ["ANY", "CONTROLLER", "Ask", "Pause", "Plan", "ask", "at_leaders", "values_or_raise"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

TOO_LATE: Final = "it did not succeed in time; try again, or raise the timeout"
PATIENCE: Final = 3
"""Retries for a topic that a broker does not know: a new topic is not known everywhere at once."""
AGAIN: Final = frozenset(
    kind.code
    for kind in (
        NotController,
        NotCoordinator,
        CoordinatorNotAvailable,
        CoordinatorLoadInProgress,
        ConcurrentTransactions,
        ThrottlingQuotaExceeded,
    )
)
"""Errors of a row after which the whole request is sent again, as nothing was done."""


@define(eq=False)
class Ask:
    """One request. `target` is as in `client.cluster.calls`; with `once` it is not retried."""

    request: Any
    target: Target = ANY
    verdict: Verdict = no_error
    withheld: frozenset[str] = NONE
    once: bool = False
    purpose: str = ""
    """The name of the request that this one prepares, if that decides what the user has to be allowed."""
    node: int = -1
    """The node that answered; set with the outcome."""


@define(eq=False)
class Pause:
    """Wait as after this many failures. After the deadline, `RequestTimedOut` is thrown into the plan."""

    failures: int


Plan = Generator[Sequence[Ask] | Pause, Any, T]
Partition = tuple[str, int]
"""(topic, partition), a `TopicPartition` or a plain tuple."""
ByPartition = Mapping[TopicPartition, V] | Mapping[tuple[str, int], V]


def several(given: Any) -> list[Any]:
    """Return one name or id, or several, as a list without repetitions."""
    return [given] if isinstance(given, (str, UUID)) else list(dict.fromkeys(given))


def partitions_of(given: ByPartition[V]) -> dict[TopicPartition, V]:
    return {TopicPartition(*name): value for name, value in given.items()}


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return found


# ---------------------------------------------------------------- verdicts, rows, results


def in_rows(name: str) -> Verdict:
    """Return a verdict that also checks the rows `name` of a response."""

    def verdict(response: Any) -> int:
        if code := no_error(response):
            return code
        return next((row.error_code for row in getattr(response, name) if row.error_code in AGAIN), 0)

    return verdict


def row_error(row: Any, name: object) -> KafkaError | None:
    """Return the error of a row of a response, or None."""
    if not row.error_code:
        return None
    return error_for(row.error_code, getattr(row, "error_message", None), about=name)


def values_or_raise(results: Mapping[K, V | Exception]) -> dict[K, V]:
    """Return the values, or raise the first error, whose `results` are these."""
    found: dict[K, V] = {}
    failed: Exception | None = None
    for key, value in results.items():
        if not isinstance(value, Exception):
            found[key] = value
        elif failed is None:
            failed = value
    if failed is not None:
        if isinstance(failed, KafkaError):
            failed.results = dict(results)
        raise failed
    return found


def rows_by(keys: Iterable[K], rows: Iterable[tuple[K, Any]], made: Callable[[K, Any], V]) -> dict[K, V | Exception]:
    """Return the result of each key from its row; a key without a row has failed."""
    told = dict(rows)
    found: dict[K, V | Exception] = {}
    for key in keys:
        row = told.get(key)
        if row is None:
            found[key] = UnknownTopicOrPartition(f"the broker's response lacks {key}; try again")
        else:
            found[key] = row_error(row, key) or made(key, row)
    return found


# ---------------------------------------------------------------- asking


def ask(request: Any, target: Target = ANY, verdict: Verdict = no_error, withheld: frozenset[str] = NONE) -> Plan[Any]:
    """Return the response to one request, or raise its error."""
    (outcome,) = yield [Ask(request, target, verdict, withheld)]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def broker_ids() -> Plan[list[int]]:
    """Return the ids of the live brokers, ascending."""
    response = yield from ask(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    return sorted(row.node_id for row in response.brokers)


def at_brokers(request: Any, nodes: Iterable[int] | None = None) -> Plan[dict[int, Any]]:
    """Return each broker's own response. Raises the first error."""
    wanted = (yield from broker_ids()) if nodes is None else list(nodes)
    outcomes = yield [Ask(request, node) for node in wanted]
    return values_or_raise(dict(zip(wanted, outcomes, strict=True)))


def until_known(
    keys: Iterable[K], attempt: Callable[[list[K]], Plan[dict[K, V | Exception]]]
) -> Plan[dict[K, V | Exception]]:
    """Return the results of `attempt`; unknown topics are retried `PATIENCE` times."""
    wanted = list(keys)
    found: dict[K, V | Exception] = {}
    left = wanted
    for failures in range(PATIENCE + 1):
        found.update((yield from attempt(left)))
        left = [key for key in left if isinstance(found.get(key), (UnknownTopicOrPartition, UnknownTopicId))]
        if not left or failures == PATIENCE:
            break
        yield Pause(failures)
    return {key: found[key] for key in wanted}


def leaders_of(topics: Iterable[str], purpose: str) -> Plan[dict[str, dict[int, int] | Exception]]:
    """Return topic → partition → leader id, -1 without a leader. `purpose` is as in `Ask`."""
    names = sorted(set(topics))
    request = MetadataRequest([MetadataRequestTopic(name) for name in names], allow_auto_topic_creation=False)
    (response,) = yield [Ask(request, purpose=purpose)]
    if isinstance(response, Exception):
        raise response
    return rows_by(
        names,
        ((row.name, row) for row in response.topics),
        lambda name, row: {part.partition_index: part.leader_id for part in row.partitions},
    )


Rows = Iterable[tuple[TopicPartition, int, str | None, Any]]
"""(partition, error code, error message, row)."""


def at_leaders(
    wanted: Mapping[TopicPartition, V],
    make: Callable[[list[TopicPartition]], Any],
    rows: Callable[[Any], Rows],
) -> Plan[dict[TopicPartition, Any]]:
    """Return the row of each partition from its leader's response, or an exception.

    After a retriable error the leader is looked up again; an unknown topic is given up after `PATIENCE` retries.
    """
    found: dict[TopicPartition, Any] = {}
    left = list(wanted)
    why: dict[TopicPartition, Exception] = {}
    failures = 0
    while left:
        by_node: dict[int, list[TopicPartition]] = {}
        leaders = yield from leaders_of((name.topic for name in left), request_name(make(left[:1])))
        for name in left:
            place = _leader(name, leaders[name.topic])
            if isinstance(place, Exception):
                why[name] = place
            else:
                by_node.setdefault(place, []).append(name)
        outcomes = yield [Ask(make(names), node, once=True) for node, names in by_node.items()]
        for names, outcome in zip(by_node.values(), outcomes, strict=True):
            _take(names, outcome, rows, found, why)
        for name, error in why.items():
            if not _passes(error) or (failures >= PATIENCE and isinstance(error, UnknownTopicOrPartition)):
                found[name] = error
        left = [name for name in left if name not in found]
        if left:
            try:
                yield Pause(failures)
            except RequestTimedOut:
                found.update({name: RequestTimedOut(f"{name}: {TOO_LATE} ({why[name]!r})") for name in left})
                break
            failures += 1
            why = {}
    return {name: found[name] for name in wanted}


def _leader(name: TopicPartition, topic: dict[int, int] | Exception) -> int | Exception:
    if isinstance(topic, Exception):
        return topic
    leader = topic.get(name.partition)
    if leader is None:
        return UnknownTopicOrPartition(no_partition(name.topic, name.partition, len(topic)))
    return leader if leader >= 0 else LeaderNotAvailable(f"{name} has no leader; try again")


def _take(
    names: list[TopicPartition],
    outcome: Any,
    rows: Callable[[Any], Rows],
    found: dict[TopicPartition, Any],
    why: dict[TopicPartition, Exception],
) -> None:
    if isinstance(outcome, Exception):
        why.update(dict.fromkeys(names, outcome))
        return
    told = {name: (code, message, row) for name, code, message, row in rows(outcome)}
    for name in names:
        code, message, row = told.get(name, (LeaderNotAvailable.code, None, None))
        if code:
            why[name] = error_for(code, message, about=name)
        else:
            found[name] = row


def _passes(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.retriable and not isinstance(error, UnsupportedVersion)
