"""Carries out what cleanup policies plan: drops at once, rewrites piece by piece, the long pieces on worker threads.

The log with the highest priority (for `compact`, the dirtiest) comes first, `log.cleaner.threads` of them side by side;
where there is nothing to do, the next look is after `log.cleaner.backoff.ms`. What goes wrong stays with its log:

| what | then |
|---|---|
| rotten bytes, a read or write error, a policy or rule that fails | logged with the place; the clock leaves it alone |
| the disk is full, too few file handles | what was written is given back; tried again later |
| an error while names are swapped | the directory goes offline, as after every write that may be half done |

The log itself is served on in the first two. Asking by name tries it again, and so does a restart.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from logkernel.broker.cleanup_policies import CleanupPolicies, not_meant, result_of, size_of
from logkernel.broker.log_manager import LogManager
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.retention import TURN_MS, Results, Retention
from logkernel.broker.runtime import Runtime
from logkernel.contracts import Rewrite
from logkernel.errors import KafkaStorageError, LogkernelError, RewriteStopped
from logkernel.storage.disk import PASSING
from logkernel.vocabulary import CleanupResult, LogSize, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.replica import Replica
    from logkernel.storage.compaction.rewriting import Rewriting
    from logkernel.storage.directory import DataDirectory

log = logging.getLogger("logkernel.cleaner")

REFUSED = (*PASSING, errno.EFBIG)
"""Errors that say nothing of the log: it is tried again, after a pause."""
PAUSE_MS = 60_000
NEVER_REWRITES = ("delete",)
"""The policy of most logs, which need not be asked."""


class Throttle:
    """Keeps all cleaners together below so many bytes a second; pauses in the worker that asks."""

    def __init__(self, bytes_per_s: float, mono_ms: Callable[[], int], pause: Callable[[float], object]) -> None:
        """`pause` takes seconds."""
        self.bytes_per_s = bytes_per_s
        self._mono_ms = mono_ms
        self._pause = pause
        self._free_at_s = 0.0
        self._lock = threading.Lock()

    def __call__(self, size: int) -> None:
        if self.bytes_per_s >= 1e15:
            return
        with self._lock:
            now_s = self._mono_ms() / 1000
            start_s = max(now_s, self._free_at_s)
            self._free_at_s = start_s + size / max(self.bytes_per_s, 1.0)
        if start_s > now_s:
            self._pause(start_s - now_s)


class _Job:
    """One rewrite under way."""

    __slots__ = ("before", "done", "policy", "replica", "rewriting")

    def __init__(self, replica: Replica, policy: str, rewriting: Rewriting, before: LogSize) -> None:
        self.replica = replica
        self.policy = policy
        self.rewriting = rewriting
        self.before = before
        self.done: list[Callable[[CleanupResult | None, BaseException | None], None]] = []


class Cleaner:
    """Every rewrite of this broker, planned or under way."""

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        logs: LogManager,
        policies: CleanupPolicies,
        retention: Retention,
    ) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._logs = logs
        self._policies = policies
        self._retention = retention
        limit = float(runtime.config.get("log.cleaner.io.max.bytes.per.second"))
        self._throttle = Throttle(limit, runtime.clock.mono_ms, runtime.workers.pause)
        self._jobs: dict[TopicPartition, _Job] = {}
        self._paused_until_ms: dict[TopicPartition, int] = {}
        self._to_ask: deque[Replica] = deque()
        self._dirty: list[tuple[float, Replica]] = []
        """(priority, log) of those that were asked and need a rewrite."""
        self.uncleanable: dict[TopicPartition, str] = {}
        """Partition → why it is not rewritten."""

    def start(self) -> None:
        if self._runtime.config.get("log.cleaner.enable"):
            self._look_later()

    def stop(self) -> None:
        """Stop all jobs before the logs close."""
        self._runtime.workers.hurry()
        self._logs.directories.file_deleter.stop()
        through = [job.replica.name for job in self._jobs.values() if job.rewriting.done]
        for job in list(self._jobs.values()):
            try:
                job.rewriting.stop()
            except OSError as error:
                self._replicas.storage_failed(job.replica, error)
        self._runtime.workers.close()
        for name in through:  # nobody is told any more whether that was noted
            with contextlib.suppress(KeyError, KafkaStorageError):
                self._logs.directories.write_clean_offsets(name)
        self._jobs.clear()

    def abandon(self) -> None:
        """Let go of every job as it is: nothing is written any more."""
        self._runtime.workers.hurry()
        self._logs.directories.file_deleter.stop()
        for job in self._jobs.values():
            job.rewriting.stop(finish=False)
        self._runtime.workers.close()
        self._jobs.clear()

    @property
    def busy(self) -> bool:
        """Whether there are logs to ask, or rewrites under way."""
        return bool(self._to_ask or self._jobs)

    # ------------------------------------------------------------ rewriting by the clock

    def _look_later(self) -> None:
        backoff_ms = max(1, int(self._runtime.config.get("log.cleaner.backoff.ms")))
        self._runtime.after(backoff_ms, self._look)

    def _look(self) -> None:
        """By the clock; come again later."""
        try:
            self._throttle.bytes_per_s = float(self._runtime.config.get("log.cleaner.io.max.bytes.per.second"))
            self.start_dirtiest()
        except Exception:
            log.exception("looking for logs to clean failed")
        finally:
            self._look_later()

    def start_dirtiest(self) -> None:
        """Ask every log, then start as many rewrites as there are threads for."""
        if len(self._jobs) < self._policies.cleaner_threads and not self._to_ask:
            self._to_ask.extend(self._replicas.all())
            self._ask_some()

    def _ask_some(self) -> None:
        """As many as one turn of the loop has time for."""
        clock = self._runtime.clock
        begun_ms = clock.mono_ms()

        def in_time() -> bool:
            return clock.mono_ms() - begun_ms < TURN_MS

        while self._to_ask:
            replica = self._to_ask.popleft()
            if self._may_rewrite(replica) and not self._take_stock(replica, in_time):
                self._to_ask.appendleft(replica)
            else:
                found = self._rewrite_of(replica)
                if found is not None:
                    self._dirty.append((found[1].priority, replica))
            if self._to_ask and not in_time():
                self._runtime.after(1, self._ask_some)
                return
        dirty = sorted(self._dirty, key=lambda row: -row[0])
        self._dirty.clear()
        for _, replica in dirty:
            if len(self._jobs) >= self._policies.cleaner_threads:
                break
            found = self._rewrite_of(replica)  # anew: the first may be some turns old
            if found is not None:
                try:
                    self._begin(replica, *found)
                except Exception as error:
                    self._refuse(replica, error)

    def _take_stock(self, replica: Replica, in_time: Callable[[], bool]) -> bool:
        """Read what policies need to know; False where there is more than this turn has time for."""
        try:
            return replica.log.take_stock(in_time)
        except Exception as error:
            self._refuse(replica, error)
            return True

    def _rewrite_of(self, replica: Replica) -> tuple[str, Rewrite] | None:
        """(policy, plan) of the rewrite that a log needs most, where it is nobody's business yet."""
        if not self._may_rewrite(replica):
            return None
        try:
            plans = self._policies.plans(replica)
        except Exception as error:
            self._refuse(replica, error)
            return None
        rewrites = [(name, step) for name, step in plans if isinstance(step, Rewrite)]
        return max(rewrites, key=lambda row: row[1].priority, default=None)

    def _may_rewrite(self, replica: Replica) -> bool:
        mono_ms = self._runtime.clock.mono_ms()
        return not (
            replica.settings.cleanup_policy == NEVER_REWRITES
            or replica.name in self._jobs
            or replica.name in self.uncleanable
            or self._paused_until_ms.get(replica.name, mono_ms) > mono_ms
            or not replica.in_service
        )

    def _begin(self, replica: Replica, policy: str, plan: Rewrite) -> _Job:
        get = self._runtime.config.get
        rewriting = replica.log.begin_rewrite(
            plan,
            self._runtime.kernel.codec_for,
            self._runtime.clock.wall_ms(),
            buffer_bytes=int(get("log.cleaner.io.buffer.size")) // max(self._policies.cleaner_threads, 1),
            throttle=self._throttle,
        )
        job = self._jobs[replica.name] = _Job(replica, policy, rewriting, size_of(replica))
        log.info("rewrite begins: partition=%s policy=%s end=%d reason=%s", replica.name, policy, plan.end, plan.reason)
        self._go_on(job)
        return job

    def _go_on(self, job: _Job) -> None:
        self._runtime.workers.run(job.rewriting.work, lambda error: self._worked(job, error))

    def _worked(self, job: _Job, error: BaseException | None) -> None:
        """On the broker's thread: a piece of work is through."""
        if error is None:
            try:
                job.rewriting.step()
            except OSError as failed:
                error = failed
        if error is not None:
            self._failed(job, error)
        elif not job.rewriting.done:
            self._go_on(job)
        elif job.rewriting.stopped:
            self._failed(job, RewriteStopped(f"{job.replica.name}: the rewrite was stopped"))
        else:
            self._through(job)

    def _through(self, job: _Job) -> None:
        """Every group was rewritten: note how far it came, which needs a sync."""
        job.replica.log.end_rewrite(job.rewriting)
        directory = self._logs.directories.directory_of(job.replica.name)
        self._runtime.workers.run(directory.begin_clean_offsets(), lambda error: self._finished(job, directory, error))

    def _finished(self, job: _Job, directory: DataDirectory, error: BaseException | None) -> None:
        replica, rewriting = job.replica, job.rewriting
        del self._jobs[replica.name]
        if isinstance(error, OSError):
            self._logs.directories.not_written(directory, error)
            self._logs.report_failures()
        self.uncleanable.pop(replica.name, None)
        records_in, records_out = rewriting.records
        after = size_of(replica)
        rewritten = rewriting.spans
        before = LogSize(job.before.segments, job.before.bytes, job.before.records - rewritten + records_in)
        after = LogSize(after.segments, after.bytes, after.records - rewritten + records_out)
        log.info(
            "rewrite done: partition=%s policy=%s clean_offset=%d records=%d->%d bytes=%d->%d",
            replica.name, job.policy, rewriting.end, records_in, records_out, before.bytes, after.bytes,
        )  # fmt: skip
        self._policies.tell_done(replica, job.policy)
        result = result_of(replica, job.policy, before, after, rewriting.end)
        for done in job.done:
            done(result, None)
        if replica.in_service:
            self._retention.drop_in_the_background(replica)  # what had to wait for the rewrite
        if self._runtime.config.get("log.cleaner.enable"):
            self.start_dirtiest()

    def _failed(self, job: _Job, error: BaseException) -> None:
        replica = job.replica
        del self._jobs[replica.name]
        swap_failed = job.rewriting.swap_failed
        replica.log.abandon_rewrite(job.rewriting)
        if isinstance(error, RewriteStopped):
            log.info("%s", error)
        elif isinstance(error, OSError) and swap_failed:
            error = self._replicas.storage_failed(replica, error)
        elif replica.in_service:
            self._refuse(replica, error)
        for done in job.done:
            done(None, error)

    def _refuse(self, replica: Replica, error: BaseException) -> None:
        """Skip a log: for a while if the disk is full or file handles are missing, else until a user asks for it."""
        if isinstance(error, OSError) and error.errno in REFUSED:
            self._paused_until_ms[replica.name] = self._runtime.clock.mono_ms() + PAUSE_MS
            log.warning(
                "rewrite put off, the disk is full or handles are too few: partition=%s error=%s", replica.name, error
            )
            return
        self.uncleanable[replica.name] = str(error)
        log.error("partition cannot be cleaned, it is served on: partition=%s error=%s", replica.name, error)

    def forget(self, name: TopicPartition) -> None:
        """The partition was deleted: a new one of the same name starts without its failures."""
        self.uncleanable.pop(name, None)
        self._paused_until_ms.pop(name, None)

    # ------------------------------------------------------------ by name

    def compact(self, topic: str, done: Results) -> None:
        """Rewrite every log of a topic by its policies; the active segments are closed first, so that they take part.

        `done` is told once, on this thread: what was done to each partition, or what went wrong with the first.
        Raises `PolicyViolation` where the topic's policies compact nothing.
        """
        replicas = self._replicas.of_topic(topic)
        policies = replicas[0].settings.cleanup_policy
        if set(policies) <= set(NEVER_REWRITES):
            raise not_meant(topic, policies, "compacts nothing", ("compact",))
        _TopicCompaction(self, [*replicas], done).go_on()

    @property
    def under_way(self) -> list[TopicPartition]:
        """The logs that are rewritten now, in the order in which that began."""
        return list(self._jobs)

    def job_of(self, replica: Replica) -> _Job | None:
        return self._jobs.get(replica.name)

    def take_stock_in_turns(self, replica: Replica, go_on: Callable[[], None]) -> bool:
        """Read what policies need to know; False where that takes another turn of the loop, which begins with `go_on`.
        Raises `OSError`, `KafkaStorageError`."""
        clock = self._runtime.clock
        begun_ms = clock.mono_ms()
        if not replica.in_service or replica.log.take_stock(lambda: clock.mono_ms() - begun_ms < TURN_MS):
            return True
        self._runtime.after(1, go_on)
        return False

    def rewrite_asked(self, replica: Replica) -> _Job | None:
        """Start what the policies plan when asked by name; None where there is nothing to rewrite. Raises as
        `ReplicaManager.absence` says where the partition is gone."""
        if not replica.in_service:
            raise self._replicas.absence(*replica.name)(str(replica.name))
        self.uncleanable.pop(replica.name, None)
        self._throttle.bytes_per_s = float(self._runtime.config.get("log.cleaner.io.max.bytes.per.second"))
        try:
            if not replica.log.active_is_empty:
                replica.log.roll(self._runtime.clock.wall_ms())
        except OSError as error:
            if error.errno in PASSING:
                raise KafkaStorageError(f"{replica.name}: {error}") from error
            raise self._replicas.storage_failed(replica, error) from error
        for name, step in self._policies.plans(replica, asked=True):
            if isinstance(step, Rewrite):
                return self._begin(replica, name, step)
        return None


class _TopicCompaction:
    """One `compact` of a topic: rewrites its partitions one after another."""

    def __init__(self, cleaner: Cleaner, left: list[Replica], done: Results) -> None:
        self._cleaner = cleaner
        self._left = left
        self._done = done
        self._results: list[CleanupResult] = []

    def go_on(self) -> None:
        try:
            while self._left:
                under_way = self._cleaner.job_of(self._left[0])
                if under_way is not None:  # by the clock: it goes first
                    under_way.done.append(lambda result, error: self.go_on())
                    return
                if not self._cleaner.take_stock_in_turns(self._left[0], self.go_on):
                    return
                job = self._cleaner.rewrite_asked(self._left.pop(0))
                if job is not None:
                    job.done.append(self._next)
                    return
        except (LogkernelError, OSError) as error:
            self._done(error)
        else:
            self._done(self._results)

    def _next(self, result: CleanupResult | None, error: BaseException | None) -> None:
        if error is not None:
            self._done(error)
            return
        assert result is not None
        self._results.append(result)
        self.go_on()
