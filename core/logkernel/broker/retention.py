"""Drops what cleanup policies want dropped, so that no request waits behind it, whatever its size.

| step | where |
|---|---|
| LOOK: what the policies need to know is read, they plan | the broker's thread, a few milliseconds in a turn |
| NOTE: the directory's log starts say where the log will start | where flushes run |
| DROP: the log starts there, its segments leave it | the broker's thread, so many in a turn |
| files are renamed `.deleted` | the same |
| files are removed, `file.delete.delay.ms` later | a worker's thread, see `storage.file_deleter` |

A log start is checkpointed before anyone sees it, so it never moves back, even after a crash. If the disk has no room
for the checkpoint, the oldest segment alone is dropped, which frees some. The next start takes up what a stop or a
crash left, and waits for none of it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from logkernel.attrs_lite import evolve, field, mutable
from logkernel.broker.cleanup_policies import CleanupPolicies, not_meant, result_of, size_of
from logkernel.broker.log_manager import LogManager
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.contracts import DropBefore
from logkernel.errors import KafkaStorageError, LogkernelError
from logkernel.storage.disk import FULL, PASSING
from logkernel.storage.dropped_files import RENAMED_AT_ONCE
from logkernel.vocabulary import CleanupResult, LogSize, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.replica import Replica
    from logkernel.storage.directory import DataDirectory
    from logkernel.storage.log import Log

log = logging.getLogger("logkernel.cleaner")

TURN_MS = 2
"""So long the loop looks at logs in one go."""
DROPPED_IN_A_TURN = 256
NEVER_EXPIRES = ("compact",)
TRIED_AGAIN_MS = 1000
"""When a rename found no room."""

Results = Callable[[list[CleanupResult] | BaseException], None]


@mutable
class Drop:
    """What one log drops."""

    replica: Replica
    expiry: _TopicExpiry | None = None
    at_once: bool = False
    """The caller waits: do everything in one turn."""
    log: Log = field(init=False)
    """Of the replica when this was planned: it may move to another directory meanwhile."""
    steps: deque[tuple[str, DropBefore]] = field(init=False, factory=deque)
    """(policy, step) that are left to be carried out."""
    offset: int = field(init=False, default=0)
    """Where the log will start."""
    turn: int = field(init=False, default=0)
    """While not 0, the log start waits for a checkpoint of that turn or a later one."""
    before: LogSize = field(init=False)
    """How much the log held before the policy at hand."""
    of_step: int = field(init=False, default=0)
    """Segments that the step at hand has dropped."""
    of_policy: int = field(init=False, default=0)
    results: list[CleanupResult] = field(init=False, factory=list)
    behind: list[Drop] = field(init=False, factory=list)
    """Others of this log, which wait for its end."""


class _TopicExpiry:
    """Collects the results of one `expire` of a topic."""

    def __init__(self, logs: int, done: Results) -> None:
        self._left = logs
        self._done = done
        self._error: BaseException | None = None
        self._results: list[CleanupResult] = []

    def add(self, results: Sequence[CleanupResult], error: BaseException | None) -> None:
        self._results += results
        self._error = self._error or error
        self._left -= 1
        if not self._left:
            self._done(self._error or sorted(self._results, key=lambda each: each.partition))


class Retention:
    """Every drop of this broker, waiting or under way."""

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, logs: LogManager, policies: CleanupPolicies) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._logs = logs
        self._policies = policies
        self._to_look: deque[Drop] = deque()
        """Logs whose drops are still to be planned."""
        self._under_way: dict[TopicPartition, Drop] = {}
        """Those that are planned, to their end."""
        self._turn = 0
        self._purging: dict[TopicPartition, int] = {}
        """Partition → when a timer goes on with its dropped files."""

    def start(self) -> None:
        """Take up what the last run left."""
        for replica in self._replicas.all():
            if replica.log.leaving:
                self._purge(replica)
        self._logs.delete_files()

    def forget(self, name: TopicPartition) -> None:
        """The partition is deleted."""
        self._purging.pop(name, None)
        gone = self._under_way.get(name)
        if gone is not None:
            self._end(gone, KafkaStorageError(f"{name}: deleted"))

    @property
    def busy(self) -> bool:
        """Whether there are logs to look at, or drops under way."""
        return bool(self._to_look or self._under_way)

    # ------------------------------------------------------------ LOOK

    def drop_all(self) -> None:
        """What the policies want dropped, of every log that is not being rewritten; files whose delay is over go."""
        asked = [drop for drop in self._to_look if drop.expiry is not None]
        self._look_at([*asked, *map(Drop, self._replicas.all())], anew=True)

    def drop_in_the_background(self, replica: Replica) -> None:
        """As `drop_all`, of one log."""
        self._look_at([Drop(replica)])

    def expire(self, topic: str, done: Results, *, at_once: bool = False) -> None:
        """Drop what the topic's policies want dropped, now; `done` is told once, on this thread, when it is durable:
        what was done to each partition, or what went wrong with one. With `at_once` it takes no turns with others.

        Raises `UnknownTopicOrPartition`, and `PolicyViolation` where the topic's policies expire nothing.
        """
        replicas = self._replicas.of_topic(topic)
        policies = replicas[0].settings.cleanup_policy
        if set(policies) <= set(NEVER_EXPIRES):
            raise not_meant(topic, policies, "expires nothing", (*policies, "delete"))
        self._drop(replicas, done, at_once=at_once)

    def _drop(self, replicas: Sequence[Replica], done: Results, *, at_once: bool) -> None:
        """What the policies want dropped of some logs; `done` is told when it left them, durably. With `at_once` that
        is before this returns."""
        expiry = _TopicExpiry(len(replicas), done)
        self._look_at([Drop(replica, expiry, at_once) for replica in replicas], at_once=at_once)

    def _look_at(self, drops: Sequence[Drop], *, anew: bool = False, at_once: bool = False) -> None:
        idle = not self._to_look
        if anew:
            self._to_look.clear()
        self._to_look.extendleft(reversed(drops))
        if idle or at_once:
            self._look_at_some()

    def _look_at_some(self) -> None:
        clock = self._runtime.clock
        begun_ms = clock.mono_ms()

        def over() -> bool:
            return clock.mono_ms() - begun_ms >= TURN_MS

        while self._to_look:
            drop = self._to_look.popleft()
            if not self._look(drop, over):
                self._to_look.appendleft(drop)
            if self._to_look and not self._to_look[0].at_once and over():
                self._runtime.after(1, self._look_at_some)
                break
        self._note()

    def _look(self, drop: Drop, over: Callable[[], bool]) -> bool:
        """Plan what a log drops; False where there is more to read first than one turn has time for."""
        replica = drop.replica
        if not replica.in_service:
            self._end(drop, self._gone(replica))
            return True
        if drop.expiry is None and replica.log.rewriting is not None:
            return True
        under_way = self._under_way.get(replica.name)
        if under_way is not None:
            if drop.expiry is not None:
                under_way.behind.append(drop)
            if drop.at_once and not under_way.turn:
                under_way.at_once = True
                self._carry_out(under_way)
            return True
        try:
            if not replica.log.take_stock(lambda: drop.at_once or not over()):
                return False
            self._plan(drop)
        except OSError as error:  # nothing was written: whoever looks next finds what there is
            log.error("cleanup put off: partition=%s error=%s", replica.name, error)
            self._end(drop, KafkaStorageError(f"{replica.name}: {error}"))
        except LogkernelError as error:
            log.error("cleanup policy failed: partition=%s error=%s", replica.name, error)
            self._end(drop, error)
        except Exception as error:
            log.exception("cleanup policy failed: partition=%s", replica.name)
            self._end(drop, error)
        return True

    def _gone(self, replica: Replica) -> LogkernelError:
        return self._replicas.absence(*replica.name)(str(replica.name))

    def _plan(self, drop: Drop) -> None:
        """Policies one after the other: each sees what the one before it will leave."""
        replica = drop.replica
        facts = self._policies.facts(replica)
        active = facts.segments[-1]
        drop.before = size_of(replica)
        for name in replica.settings.cleanup_policy:
            policy = self._policies.get(name, replica.settings)
            found = [step for step in policy.plan(facts) if isinstance(step, DropBefore)] if policy is not None else []
            for step in found:
                offset = min(step.offset, replica.high_watermark)
                drop.steps.append((name, evolve(step, offset=offset)))
                drop.offset = max(drop.offset, offset)
            if found:
                left = tuple([each for each in facts.segments if each.next_offset > drop.offset or each.active])
                facts = evolve(facts, segments=left, log_start_offset=max(facts.log_start_offset, drop.offset))
        drop.log = replica.log
        if drop.offset >= active.next_offset and active.size_bytes and not self._roll(drop, active.base_offset):
            return
        self._under_way[replica.name] = drop
        noted = self._logs.directories.directory_of(replica.name).log_starts.get(replica.name, 0)
        if drop.steps and drop.offset > noted:
            replica.log.promise_start(drop.offset)
            self._turn += 1
            drop.turn = self._turn
        else:
            self._carry_out(drop)

    def _roll(self, drop: Drop, active_base: int) -> bool:
        """The active segment is to go, too; where there is no room for another one it stays."""
        replica = drop.replica
        try:
            replica.log.roll(self._runtime.clock.wall_ms())
        except OSError as error:
            if error.errno not in PASSING:
                self._end(drop, self._replicas.storage_failed(replica, error))
                return False
            log.warning("active segment stays: partition=%s error=%s", replica.name, error)
            drop.offset = min(drop.offset, active_base)
            drop.steps = deque((name, evolve(step, offset=min(step.offset, active_base))) for name, step in drop.steps)
        return True

    # ------------------------------------------------------------ NOTE

    def _note(self) -> None:
        """Have log starts written that are to move."""
        if any(drop.turn for drop in self._under_way.values()):
            turn = self._turn
            self._logs.checkpoint_log_starts(lambda directory, error: self._noted(directory, turn, error))

    def _noted(self, directory: DataDirectory, turn: int, error: OSError | None) -> None:
        """The log starts of the turns up to `turn` were written, or could not be."""
        due = [
            drop
            for name, drop in self._under_way.items()
            if 0 < drop.turn <= turn and (directory.logs.get(name) is drop.log or drop.replica.log is not drop.log)
        ]
        if error is None:
            for drop in due:
                drop.turn = 0
                self._carry_out(drop)
        elif error.errno in FULL and True in [self._make_room(drop) for drop in due]:
            self._runtime.after(1, self._note)
        else:
            for drop in due:
                drop.log.promise_start(0)
                self._end(drop, KafkaStorageError(f"{drop.replica.name}: its log start cannot be noted: {error}"))

    def _make_room(self, drop: Drop) -> bool:
        """Let the oldest segment go without a note: alone it leaves no hole, whatever a crash undoes of its removal."""
        replica = drop.replica
        if not replica.in_service or replica.log is not drop.log:
            return False
        try:
            made = drop.log.facts()[0].next_offset <= drop.offset and drop.log.make_room()
        except OSError as error:
            if error.errno not in PASSING:
                self._replicas.storage_failed(replica, error)
            made = False
        replica.advance_log_start(drop.log.start_offset)
        return made

    # ------------------------------------------------------------ DROP

    def _carry_out(self, drop: Drop) -> None:
        """The next steps of a plan whose log start is noted."""
        replica = drop.replica
        if not replica.in_service or replica.log is not drop.log:
            self._end(drop, self._gone(replica))
            return
        try:
            replica.advance_log_start(min(drop.offset, replica.log.end_offset))
            while drop.steps and not (drop.expiry is None and replica.log.rewriting is not None):
                if not self._step(drop):
                    self._runtime.after(1, lambda: self._carry_out(drop))
                    return
        except OSError as error:
            self._end(drop, self._replicas.storage_failed(replica, error))
            return
        self._end(drop)
        self._purge(replica)

    def _step(self, drop: Drop) -> bool:
        """Drop what the first of the steps left says; False where that takes another turn."""
        replica, (policy, step) = drop.replica, drop.steps[0]
        most = None if drop.at_once else DROPPED_IN_A_TURN
        offset = min(step.offset, drop.log.end_offset)  # a follower's log may have been cut since
        dropped = len(drop.log.drop_before(offset, self._runtime.clock.wall_ms(), rename=False, most=most))
        drop.of_step += dropped
        if dropped == most:
            return False
        drop.steps.popleft()
        if drop.of_step:
            log.info(
                "segments deleted: partition=%s count=%d log_start_offset=%d reason=%s",
                replica.name, drop.of_step, replica.log.start_offset, step.reason,
            )  # fmt: skip
            self._policies.tell_done(replica, policy)
        drop.of_policy += drop.of_step
        drop.of_step = 0
        if not drop.steps or drop.steps[0][0] != policy:
            after = size_of(replica)
            if drop.of_policy:
                drop.results.append(result_of(replica, policy, drop.before, after))
            drop.before, drop.of_policy = after, 0
        return True

    def _end(self, drop: Drop, error: BaseException | None = None) -> None:
        name = drop.replica.name
        if self._under_way.get(name) is drop:
            del self._under_way[name]
        drop.steps.clear()
        if drop.expiry is not None:
            drop.expiry.add(drop.results, error)
        if drop.behind:
            self._look_at(drop.behind)

    # ------------------------------------------------------------ files

    def _purge(self, replica: Replica) -> None:
        """Rename files of dropped segments, a few at a time, as a request may wait behind them; those whose delay is
        over are a worker's to remove."""
        if not replica.in_service:
            return
        wall_ms = self._runtime.clock.wall_ms()
        try:
            again_ms = 1 if replica.log.rename_dropped(RENAMED_AT_ONCE) else None
        except OSError as error:
            if error.errno not in PASSING:
                self._replicas.storage_failed(replica, error)
                return
            log.warning("dropped files keep their names: partition=%s error=%s", replica.name, error)
            again_ms = TRIED_AGAIN_MS
        replica.log.purge(wall_ms)
        self._logs.delete_files()
        if again_ms is None:
            again_ms = replica.log.purge_due_ms(wall_ms)
        if again_ms is not None:
            self._purge_in(replica, again_ms)

    def _purge_in(self, replica: Replica, wait_ms: int) -> None:
        """One timer a log, the earliest that was asked for."""
        name, clock = replica.name, self._runtime.clock
        when_ms = clock.mono_ms() + max(1, wait_ms)
        if self._purging.get(name, when_ms + 1) <= when_ms:
            return
        self._purging[name] = when_ms

        def go_on() -> None:
            if self._purging.get(name) == when_ms:
                del self._purging[name]
                self._purge(replica)

        self._runtime.timers.at(when_ms, go_on)
