"""Objects of plugins that decide are asked through a guard: it times, judges and names them.

A guard raises `PluginError` for what the plugin raises or decides wrongly, and notes both in `PluginFaults`. What a
plugin may decide:

    object            refused where
    CleanupPolicy     the plan is no sequence of `DropBefore` and `Rewrite`
      DropBefore      `offset` is no int, is negative, or lies above the high watermark
      Rewrite         `start` or `end` is no int; not `0 <= start <= end`; `end` lies above the active segment's base
                      offset; the rule lacks `learn` or `keep`
    ElectionStrategy  the leader is not a live replica of the assignment; the ISR is not part of the assignment, or
                      lacks the leader; a clean election of a leader that was not in sync
    IsrPolicy         the answer is neither True nor False
    PlacementStrategy there are not as many rows as partitions; a row has not `factor` replicas, or one twice, or one of
                      a broker that is not alive
    ProduceInterceptor
                      an answer is neither a `Record`, of bytes, headers and an int64 timestamp, nor a `Refusal`
    CompactionStrategy
                      there is not one int64 for each record of the batch
    FetchFilter       the answer is neither True nor False
    Quota             the answer is no int, or is negative
    Authorizer        there is not one bool for each resource
    Assignor          judged by the groups service, which knows the members
    TaskAssignor      see `judged_tasks`
    Partitioner       judged by who asks, which knows the partitions

A policy that wants the active segment gone says so by its next offset, which the high watermark must have reached. An
offset inside a segment drops the segments before it. Nothing of a refused plan is carried out.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID

from logkernel.contracts import (
    Assignor,
    Authorizer,
    BatchView,
    Candidates,
    CleanupPolicy,
    CompactionStrategy,
    DropBefore,
    Elected,
    ElectionStrategy,
    FetchFilter,
    FollowerFacts,
    GroupFacts,
    IsrPolicy,
    KeepRule,
    LogFacts,
    MemberTasks,
    Partitioner,
    PlacementFacts,
    PlacementStrategy,
    ProduceInterceptor,
    Quota,
    ReadFacts,
    Refusal,
    RequestContext,
    Rewrite,
    TaskAssignor,
    TaskFacts,
    Usage,
    WriteFacts,
)
from logkernel.errors import LogkernelError, PluginError
from logkernel.judged_tasks import judged_tasks
from logkernel.plugin_faults import BUDGET_MS, SLOW_MS, WINDOW_S, Origin, PluginFaults
from logkernel.vocabulary import Acl, AclOperation, Record, ResourceType

T = TypeVar("T")

MAX_REFUSALS = 1_000
"""Refused records of one batch that its client is told of."""
MAX_REASON = 500
"""Characters of a refusal that are sent to the client."""
REQUEST_REFUSED = "the request is refused"
VERSION_BYTES = 8
MAX_THROTTLE_MS = 60_000
"""Longest time for which a quota holds a client back at once."""


class _Guard:
    """Calls one object of a plugin."""

    __slots__ = ("_faults", "_origin")

    def __init__(self, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        self._faults = faults
        self._origin = origin

    def _call(self, place: str, consequence: str, decide: Callable[[], T]) -> T:
        running, begun_s = self._faults.running, monotonic()
        if self._faults.budget.resting:
            self._check_budget(place, consequence, begun_s)
        outer = running.begin(self._named, place)
        try:
            return decide()
        except Exception as error:
            failed = self._failed(place, consequence, error)
            if failed is error:
                raise
            raise failed from error
        finally:
            running.end(outer)
            now_s = monotonic()
            if (now_s - begun_s) * 1000 > SLOW_MS:
                self._was_slow(place, consequence, begun_s, now_s)

    def _failed(self, place: str, consequence: str, error: Exception) -> Exception:
        """Note what a plugin raised; return what is to be raised."""
        if isinstance(error, PluginError):
            self._faults.misbehaved(self._origin(), place, str(error), consequence)
            return error
        if isinstance(error, LogkernelError):
            return error
        self._faults.raised(self._origin(), place, error, consequence)
        return PluginError(f"{self._origin()} failed in {place}: {type(error).__name__}: {error}; {consequence}")

    def _check_budget(self, place: str, consequence: str, now_s: float) -> None:
        """Raises `PluginError` for what has used up its time."""
        left_s = self._faults.budget.rests_for(place, now_s)
        if left_s > 0:
            raise PluginError(
                f"{self._origin()}: {place} is not asked for {left_s:.0f} s, as it held up the broker for over"
                f" {BUDGET_MS // 1000} s within a minute; {consequence}"
            )

    def _was_slow(self, place: str, consequence: str, begun_s: float, now_s: float) -> None:
        elapsed_ms = (now_s - begun_s) * 1000
        self._faults.took(self._origin(), place, elapsed_ms)
        if self._faults.budget.spent(place, elapsed_ms, now_s):
            what = (
                f"held up the broker for over {BUDGET_MS // 1000} s within a minute, and is not asked for {WINDOW_S} s"
            )
            self._faults.misbehaved(self._origin(), f"{place}, budget", what, consequence)

    def _named(self, place: str) -> tuple[Origin, str]:
        return self._origin(), place


class GuardedPolicy(_Guard):
    """`contracts.CleanupPolicy`."""

    __slots__ = ("_name", "_policy")

    def __init__(self, policy: CleanupPolicy, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        super().__init__(faults, origin)
        self._policy = policy
        self._name = name

    def plan(self, log: LogFacts) -> list[DropBefore | Rewrite]:
        return self._call(
            f"cleanup policy {self._name}",
            "the log stays as it is",
            lambda: judged_plan(self._name, log, self._policy.plan(log)),
        )


class GuardedElection(_Guard):
    """`contracts.ElectionStrategy`."""

    __slots__ = ("_name", "_strategy")

    def __init__(
        self, strategy: ElectionStrategy, name: str, faults: PluginFaults, origin: Callable[[], Origin]
    ) -> None:
        super().__init__(faults, origin)
        self._strategy = strategy
        self._name = name

    def elect(self, candidates: Candidates) -> Elected | None:
        return self._call(
            f"election {self._name}",
            "the partition has no leader until the next election",
            lambda: judged_election(self._name, candidates, self._strategy.elect(candidates)),
        )


class GuardedIsr(_Guard):
    """`contracts.IsrPolicy`."""

    __slots__ = ("_name", "_policy")

    def __init__(self, policy: IsrPolicy, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        super().__init__(faults, origin)
        self._policy = policy
        self._name = name

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        return self._call(
            f"ISR policy {self._name}",
            "replica.lag.time.max.ms decides",
            lambda: judged_in_sync(self._name, self._policy.is_in_sync(follower)),
        )


class GuardedPlacement(_Guard):
    """`contracts.PlacementStrategy`."""

    __slots__ = ("_name", "_strategy")

    def __init__(
        self, strategy: PlacementStrategy, name: str, faults: PluginFaults, origin: Callable[[], Origin]
    ) -> None:
        super().__init__(faults, origin)
        self._strategy = strategy
        self._name = name

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        return self._call(
            f"placement {self._name}",
            "the partitions are not created",
            lambda: judged_placement(self._name, facts, self._strategy.place(facts)),
        )


class GuardedProduceInterceptor(_Guard):
    """`contracts.ProduceInterceptor`; `intercept` asks it for a batch at a time."""

    __slots__ = ("_interceptor", "_name")

    def __init__(
        self, interceptor: ProduceInterceptor, name: str, faults: PluginFaults, origin: Callable[[], Origin]
    ) -> None:
        super().__init__(faults, origin)
        self._interceptor = interceptor
        self._name = name

    def on_record(self, record: Record, write: WriteFacts) -> Record | Refusal:
        return self._guarded(write, lambda: self._judged(record, write))

    def intercept(self, records: list[Record], write: WriteFacts) -> list[tuple[int, str]]:
        """Replace `records` by what the plugin makes of them; return (index, reason) of those that it refuses."""
        return self._guarded(write, lambda: self._ask_for_each(records, write))

    def _guarded(self, write: WriteFacts, decide: Callable[[], T]) -> T:
        place = f"produce interceptor {self._name}"
        return self._call(place, f"the batch for {write.topic}-{write.partition} was not written", decide)

    def _ask_for_each(self, records: list[Record], write: WriteFacts) -> list[tuple[int, str]]:
        refused: list[tuple[int, str]] = []
        for index, record in enumerate(records):
            answer = self._judged(record, write)
            if isinstance(answer, Record):
                records[index] = answer
                continue
            refused.append((index, answer.reason[:MAX_REASON]))
            if len(refused) == MAX_REFUSALS:
                break
        return refused

    def _judged(self, record: Record, write: WriteFacts) -> Record | Refusal:
        index = record.offset
        answer: Any = self._interceptor.on_record(record, write)
        if _is_record(answer) or (isinstance(answer, Refusal) and isinstance(answer.reason, str)):
            found: Record | Refusal = answer
            return found
        raise PluginError(
            f"{self._origin()}: produce interceptor {self._name} returned {answer!r:.200} for record {index};"
            f" return a Record of bytes, or a Refusal with a text"
        )


class GuardedPartitioner:
    """`contracts.Partitioner`. It is asked for each record, so it is not timed; its errors come to the caller at once,
    so they are not noted."""

    __slots__ = ("_name", "_origin", "_partitioner")

    def __init__(self, partitioner: Partitioner, name: str, origin: Callable[[], Origin]) -> None:
        self._partitioner = partitioner
        self._name = name
        self._origin = origin

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        try:
            return self._partitioner.partition(key, value, partitions, available)
        except LogkernelError:
            raise
        except Exception as error:
            raise self._failed(error, "the record is not sent: fix the plugin, or name a partition") from error

    def on_batch_full(self, partition: int) -> None:
        try:
            self._partitioner.on_batch_full(partition)
        except LogkernelError:
            raise
        except Exception as error:
            raise self._failed(error, "fix or block the plugin") from error

    def _failed(self, error: Exception, remedy: str) -> PluginError:
        return PluginError(
            f"{self._origin()} failed in partitioner {self._name}: {type(error).__name__}: {error}; {remedy}"
        )


class GuardedCompactionStrategy:
    """`contracts.CompactionStrategy`. Asked by a worker thread, so it is not timed, and the cleaner notes what it
    raises."""

    __slots__ = ("_name", "_origin", "_strategy")

    def __init__(self, strategy: CompactionStrategy, name: str, origin: Origin) -> None:
        self._strategy = strategy
        self._name = name
        self._origin = origin

    def versions(self, batch: BatchView) -> bytes:
        """Return int64s in native order."""
        try:
            answer: Any = self._strategy.versions(batch)
            found = answer if isinstance(answer, bytes) else array("q", answer).tobytes()
        except LogkernelError:
            raise
        except Exception as error:
            raise PluginError(
                f"{self._origin} failed in compaction strategy {self._name}: {type(error).__name__}: {error}; the log"
                f" is not compacted"
            ) from error
        if len(found) != VERSION_BYTES * batch.count:
            raise PluginError(
                f"{self._origin}: compaction strategy {self._name} returned {len(found) / VERSION_BYTES:g} versions for"
                f" the {batch.count} records from offset {batch.base_offset}; return one for each"
            )
        return found


class GuardedQuota(_Guard):
    """`contracts.Quota`."""

    __slots__ = ("_name", "_quota")

    def __init__(self, quota: Quota, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        super().__init__(faults, origin)
        self._quota = quota
        self._name = name

    def throttle(self, usage: Usage) -> int:
        def decide() -> int:
            answer: Any = self._quota.throttle(usage)
            if type(answer) is not int or answer < 0:
                raise PluginError(
                    f"{self._origin()}: quota {self._name} answered {answer!r:.200}; return ms as an int, 0 or more"
                )
            return min(answer, MAX_THROTTLE_MS)

        return self._call(f"quota {self._name}", f"a request for {usage.topic} failed", decide)


class GuardedAuthorizer(_Guard):
    """`contracts.Authorizer`. What it fails at is refused."""

    __slots__ = ("_authorizer", "_place")

    def __init__(self, authorizer: Authorizer, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        super().__init__(faults, origin)
        self._authorizer = authorizer
        self._place = f"authorizer {name}"

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        consequence = "every request is refused until it knows the ACLs"
        self._call(self._place, consequence, lambda: self._authorizer.acls_changed(added, removed))

    def authorize(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Sequence[str]
    ) -> Sequence[bool]:
        """As `_call`, which would cost as much again: this is asked for each request."""
        running, begun_s = self._faults.running, monotonic()
        if self._faults.budget.resting:
            self._check_budget(self._place, REQUEST_REFUSED, begun_s)
        outer = running.begin(self._named, self._place)
        try:
            answer: Any = self._authorizer.authorize(client, operation, resource_type, names)
        except Exception as error:
            failed = self._failed(self._place, REQUEST_REFUSED, error)
            raise failed from (None if failed is error else error)
        finally:
            running.end(outer)
            now_s = monotonic()
            if (now_s - begun_s) * 1000 > SLOW_MS:
                self._was_slow(self._place, REQUEST_REFUSED, begun_s, now_s)
        if isinstance(answer, list | tuple) and len(answer) == len(names):
            for allowed in answer:
                if allowed is not True and allowed is not False:
                    break
            else:
                return answer
        remedy = f"return a list with True or False for each of the {len(names)} names"
        raise self._failed(self._place, REQUEST_REFUSED, self._refused(answer, remedy))

    def authorize_by_resource_type(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        def decide() -> bool:
            answer: Any = self._authorizer.authorize_by_resource_type(client, operation, resource_type)
            if answer is not True and answer is not False:
                raise self._refused(answer, "return True or False")
            return bool(answer)

        return self._call(self._place, REQUEST_REFUSED, decide)

    def _refused(self, answer: object, remedy: str) -> PluginError:
        return PluginError(f"{self._origin()}: {self._place} answered {answer!r:.200}; {remedy}")


class GuardedFetchFilter(_Guard):
    """`contracts.FetchFilter`; `mark` asks it for a batch at a time."""

    __slots__ = ("_filter", "_name")

    def __init__(
        self, fetch_filter: FetchFilter, name: str, faults: PluginFaults, origin: Callable[[], Origin]
    ) -> None:
        super().__init__(faults, origin)
        self._filter = fetch_filter
        self._name = name

    def passes(self, record: Record, read: ReadFacts) -> bool:
        mask = bytearray(b"\1")
        self.mark([record], read, mask)
        return bool(mask[0])

    def mark(self, records: Sequence[Record], read: ReadFacts, mask: bytearray) -> None:
        """Set the byte of each record that does not pass to 0; records whose byte is 0 are not asked about."""

        def decide() -> None:
            passes = self._filter.passes
            for index, record in enumerate(records):
                if mask[index]:
                    answer: Any = passes(record, read)
                    if answer is False:
                        mask[index] = 0
                    elif answer is not True:
                        raise PluginError(
                            f"{self._origin()}: fetch filter {self._name} answered {answer!r:.200} for offset"
                            f" {record.offset}; return True or False"
                        )

        consequence = f"{read.topic}-{read.partition} cannot be read"
        self._call(f"fetch filter {self._name}", consequence, decide)


class GuardedAssignor(_Guard):
    """`contracts.Assignor`."""

    __slots__ = ("_assignor", "name")

    def __init__(self, assignor: Assignor, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        super().__init__(faults, origin)
        self._assignor = assignor
        self.name = name

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        return self._call(
            f"assignor {self.name}",
            "the group keeps its assignment, and the member that asked is told UNKNOWN_SERVER_ERROR",
            lambda: _mapping(self.name, self._assignor.assign(group)),
        )


def _mapping(name: str, found: Any) -> Mapping[str, Iterable[tuple[UUID, int]]]:
    if not isinstance(found, Mapping):
        raise PluginError(f"assignor {name} returned {found!r}; return a mapping of member id to its partitions")
    return found


class GuardedTaskAssignor(_Guard):
    """`contracts.TaskAssignor`."""

    __slots__ = ("_assignor", "name")

    def __init__(self, assignor: TaskAssignor, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        super().__init__(faults, origin)
        self._assignor = assignor
        self.name = name

    def assign(self, group: TaskFacts) -> dict[str, MemberTasks]:
        return self._call(
            f"task assignor {self.name}",
            "the assignor sticky assigns the group's tasks in its place; if that fails, members keep theirs",
            lambda: judged_tasks(self.name, group, self._assignor.assign(group)),
        )


def judged_election(name: str, candidates: Candidates, elected: Any) -> Elected | None:
    """What was elected. Raises `PluginError` for what the candidates do not allow."""
    if elected is None:
        return None
    if not isinstance(elected, Elected):
        raise PluginError(f"election {name} returned {elected!r}; return Elected or None")
    if elected.leader not in candidates.assignment or elected.leader not in candidates.alive:
        problem = f"which is no live replica (assignment {candidates.assignment}, alive {sorted(candidates.alive)})"
    elif elected.leader not in elected.isr or not set(elected.isr) <= set(candidates.assignment):
        problem = f"with the in-sync replicas {elected.isr}, which must hold the leader and replicas alone"
    elif elected.clean and elected.leader not in candidates.isr:
        problem = f"called clean, though it was not in sync (ISR {candidates.isr}); say Elected(..., clean=False)"
    else:
        return elected
    raise PluginError(f"election {name} chose leader {elected.leader}, {problem}")


def judged_in_sync(name: str, answer: Any) -> bool:
    """The answer of an ISR policy. Raises `PluginError` for what is no answer."""
    if not isinstance(answer, bool):
        raise PluginError(f"ISR policy {name} returned {answer!r}; return True or False")
    return answer


def judged_placement(name: str, facts: PlacementFacts, placed: Any) -> Sequence[Sequence[int]]:
    """What was placed. Raises `PluginError` for what cannot be."""
    if not isinstance(placed, Iterable):
        raise PluginError(f"placement {name} returned {placed!r}; return a list of replicas for each partition")
    rows = [list(row) if isinstance(row, Iterable) else [] for row in placed]
    if len(rows) != facts.partitions:
        raise PluginError(f"placement {name} placed {len(rows)} partitions of {facts.partitions}; place each")
    living = {node for node, _ in facts.brokers}
    for row in rows:
        if len(row) != facts.factor or len(set(row)) < len(row) or not living.issuperset(row):
            raise PluginError(
                f"placement {name} gave a partition the replicas {row}; give it {facts.factor} different ones of"
                f" {sorted(living)}"
            )
    return rows


def judged_plan(policy: str, facts: LogFacts, plan: Any) -> list[DropBefore | Rewrite]:
    """The steps of a plan. Raises `PluginError`, which names the policy, the step and the bound that it breaks."""
    if not isinstance(plan, Iterable):
        raise PluginError(f"cleanup policy {policy} planned {plan!r}; return a sequence of DropBefore and Rewrite")
    steps = list(plan)
    for step in steps:
        problem = _problem(facts, step)
        if problem is not None:
            raise PluginError(
                f"cleanup policy {policy} planned {_shown(step)} for {facts.topic}-{facts.partition}, {problem};"
                f" nothing of the plan was carried out"
            )
    return steps


def _problem(facts: LogFacts, step: Any) -> str | None:
    if isinstance(step, DropBefore):
        if not _is_offset(step.offset):
            return "which is no offset"
        if step.offset > facts.high_watermark:
            return f"but only records below the high watermark {facts.high_watermark} may go"
    elif isinstance(step, Rewrite):
        active = facts.segments[-1].base_offset
        if not _is_offset(step.start) or not _is_offset(step.end) or step.start > step.end:
            return "which is no range of offsets"
        if step.end > active:
            return f"but only closed segments are rewritten, and the active one begins at {active}"
        if not isinstance(step.rule, KeepRule):
            return "whose rule lacks learn() or keep()"
    else:
        return "which is neither DropBefore nor Rewrite"
    return None


def _is_record(value: Any) -> bool:
    """Whether the record is one that a batch can hold."""
    return (
        isinstance(value, Record)
        and isinstance(value.key, bytes | None)
        and isinstance(value.value, bytes | None)
        and type(value.timestamp_ms) is int
        and -1 <= value.timestamp_ms < 2**63
        and isinstance(value.headers, tuple)
        and all(
            isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], bytes | None)
            for row in value.headers
        )
    )


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(step: Any) -> str:
    if isinstance(step, DropBefore):
        return f"DropBefore({step.offset!r})"
    if isinstance(step, Rewrite):
        return f"Rewrite({step.start!r}, {step.end!r})"
    return repr(step)
