"""The shards of the services that keep their state in the same topic, and of a service that keeps none.

A partition of the topic is read once, for all of these services. So a shard number has one state for all of them:

| state | event | then |
|---|---|---|
| absent | a request; alone: the start, a while later | alone: loaded at once; in a cluster as by `leads` |
| absent | `leads`: the leadership of its partition came | loading, in turns |
| loading | all is replayed, and committed | loaded |
| loading, loaded | `resigns`: the leadership went | absent |
| any | the log cannot be read, or a machine fails | unreadable: tried again by the next request, or after a while |

The hosts of the services look their shards up in what `add` gave them, which this alone changes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from logkernel.broker.service_host.guard import ServiceFailed
from logkernel.broker.service_host.lent import Lent
from logkernel.broker.timers import Timer
from logkernel.contracts import ServiceTopic
from logkernel.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, KafkaError, NotCoordinator

if TYPE_CHECKING:
    from logkernel.broker.service_host.loading import Loading
    from logkernel.broker.service_host.shard import Shard, ShardHost

log = logging.getLogger("logkernel.services")

READ_AGAIN_MS = 60_000
"""A log that could not be read is tried again after so long, if no request does it before."""
CREATE_AGAIN_MS = 1_000
"""In a cluster: the topic of a service that answers no requests is asked for again after so long, until it is there."""


class ShardSet:
    """See the module."""

    def __init__(self, lent: Lent, topic: ServiceTopic | None) -> None:
        self._lent = lent
        self._topic = topic
        self.hosts: list[ShardHost] = []
        """Read-only."""
        self._loaded: dict[ShardHost, dict[int, Shard]] = {}
        self._loading: dict[int, Loading] = {}
        self._missed: dict[int, list[str]] = {}
        """Shard that is loading → topics that were deleted meanwhile."""
        self._unread: dict[int, Timer] = {}
        """Shards whose log could not be read, and when each is tried again."""
        self._is_led = lent.governance.is_shared and topic is not None

    def add(self, host: ShardHost) -> dict[int, Shard]:
        """A service keeps its state there, too. Returns its shards that are loaded, by number: read-only."""
        self.hosts.append(host)
        return self._loaded.setdefault(host, {})

    def _by_number(self, number: int) -> list[tuple[ShardHost, Shard]]:
        return [(host, shards[number]) for host, shards in self._loaded.items() if number in shards]

    def _is_loaded(self, number: int) -> bool:
        return any(number in shards for shards in self._loaded.values())

    # ------------------------------------------------------------ loading

    def get(self, host: ShardHost, number: int) -> Shard:
        """A service's shard, loaded; with those of the others, to read the log once.

        Raises `NotCoordinator` where the log cannot be read, a machine fails at it, or another broker leads it; in a
        cluster also `CoordinatorLoadInProgress` and `CoordinatorNotAvailable`.
        """
        shard = self._loaded[host].get(number)
        if shard is None and self._is_led:
            return self._taken_over(host, number)
        if shard is None:
            try:
                shard = self._load(host, number)
            except Exception as error:
                self.unload(host, number, error)
            if shard is None or self._loaded[host].get(number) is not shard:
                raise NotCoordinator(f"service {host.declared.name}: shard {number} cannot be loaded")
        return shard

    def _load(self, first: ShardHost, number: int) -> Shard:
        from logkernel.broker.service_host.replay import load

        made = self._new_shards(first, number)
        for shard in made:
            self._loaded[shard.host][number] = shard
        load(made)
        return made[0]

    def _new_shards(self, first: ShardHost, number: int) -> list[Shard]:
        """One of each service, that of `first` first. Raises `ServiceFailed`."""
        from logkernel.broker.service_host.shard import Shard

        hosts = [first, *(one for one in self.hosts if one is not first)]
        others: list[list[Shard]] = [[] for _ in hosts]
        made = [Shard(host, number, rest) for host, rest in zip(hosts, others, strict=True)]
        for shard, rest in zip(made, others, strict=True):
            rest += (one for one in made if one is not shard)
        return made

    def load_next(self) -> bool:
        """Load a shard that has a log and that nobody asked for so far; False where there is none.

        A service that answers no requests begins with an empty log; in a cluster as in `create_topic`. A log that could
        not be read is left for later.
        """
        for host in self.hosts:
            begins_empty = not (self._is_led or host.declared.requests)
            for number in range(host.shard_count):
                is_absent = not (self._is_loaded(number) or number in self._unread or number in self._loading)
                if is_absent and (begins_empty or host.replica(number) is not None):
                    with contextlib.suppress(NotCoordinator, CoordinatorLoadInProgress):
                        self.get(host, number)
                    return True
        return False

    def load_all(self) -> None:
        """As far as their logs can be read."""
        for timer in self._unread.values():
            timer.cancel()
        self._unread.clear()
        while self.load_next():
            pass

    # ------------------------------------------------------------ in a cluster

    def _taken_over(self, host: ShardHost, number: int) -> Shard:
        """A shard that is asked for and not loaded, in a cluster."""
        if number not in self._loading:
            assert self._topic is not None, f"service {host.declared.name} has no topic"
            if host.replica(number) is None:
                if self._lent.cluster.partition_count(self._topic.name) is None:
                    self._lent.governance.create_internal(self._topic.name)
                raise NotCoordinator(f"service {host.declared.name}: another broker leads shard {number}")
            self._load_in_turns(host, number)
        shard = self._loaded[host].get(number)
        if shard is None:
            raise CoordinatorLoadInProgress(f"service {host.declared.name}: shard {number} is being loaded")
        return shard

    def create_topic(self) -> None:
        """Have the topic created if it is of a service that answers no requests: nothing else leads to it in a cluster.
        Its shards are loaded where it is led then."""
        topic = self._topic
        if topic is None or not self._is_led or all(host.declared.requests for host in self.hosts):
            return
        if self._lent.cluster.partition_count(topic.name) is not None:
            return
        try:
            self._lent.governance.create_internal(topic.name)
        except CoordinatorNotAvailable:
            pass  # the controller was asked, or there are too few brokers for its replicas as yet
        except KafkaError as error:
            log.warning("topic of a service not created: topic=%s error=%s", topic.name, error)
        self._lent.runtime.after(CREATE_AGAIN_MS, self.create_topic)

    def leads(self, number: int) -> None:
        """The leadership of a partition came."""
        self._load_in_turns(self.hosts[0], number)

    def _load_in_turns(self, first: ShardHost, number: int) -> None:
        from logkernel.broker.service_host.loading import Loading

        replica = first.replica(number)
        if replica is None or number in self._loading or self._is_loaded(number):
            return
        try:
            made = self._new_shards(first, number)
        except ServiceFailed as error:
            self.unload(first, number, error)
            return

        def done() -> None:
            del self._loading[number]
            missed = self._missed.pop(number, None)
            for shard in made:
                self._loaded[shard.host][number] = shard
            for shard in made:
                shard.inform(shard.machine.on_loaded)
                if missed:
                    shard.inform(shard.machine.on_topics_deleted, missed)

        def failed(error: Exception) -> None:
            self._loading.pop(number, None)
            self.unload(first, number, error)

        self._loading[number] = loading = Loading(self._lent.runtime, made, replica, done, failed)
        loading.go_on()

    def resigns(self, number: int, error_code: int = NotCoordinator.code) -> None:
        """This broker no longer leads a partition, or the state of its shards is uncertain: unload them and refuse
        waiting requests."""
        loading = self._loading.pop(number, None)
        if loading is not None:
            loading.cancel()
        self._missed.pop(number, None)
        self._drop(number, error_code)

    def _drop(self, number: int, error_code: int) -> None:
        for host, shard in self._by_number(number):
            del self._loaded[host][number]
            shard.retire()
        for host in self.hosts:
            with contextlib.suppress(ServiceFailed):
                host.refuse_shard(number, error_code)

    # ------------------------------------------------------------ failure

    def rebuild(self, host: ShardHost, shard: Shard, error_code: int) -> None:
        """An append of a shard failed: rebuild its machine from the log, and refuse waiting requests."""
        from logkernel.broker.service_host.replay import load

        if self._is_led:
            self.resigns(shard.number, error_code)  # who asks next has it loaded again, if it is led here still
            return
        try:
            shard.renew()
            load([shard])
        except Exception as error:
            self.unload(host, shard.number, error)
        host.refuse_shard(shard.number, error_code)

    def unload(self, host: ShardHost, number: int, error: Exception) -> None:
        """The log of a service's shard cannot be read, or its machine fails at it: neither it nor those that share the
        log are there, and waiting requests are refused."""
        failed = isinstance(error, ServiceFailed)
        log.log(
            logging.DEBUG if number in self._unread else logging.ERROR,  # whoever asks meanwhile tries it anew
            "shard not loaded, %s: service=%s shard=%d error=%s",
            "its service fails" if failed else "its log cannot be read", host.declared.name, number, error,
            exc_info=not (failed or isinstance(error, (KafkaError, OSError))),
        )  # fmt: skip
        self._drop(number, NotCoordinator.code)
        if number not in self._unread:
            self._unread[number] = self._lent.runtime.after(READ_AGAIN_MS, partial(self._read_again, number))

    def _read_again(self, number: int) -> None:
        del self._unread[number]
        self.load_next()

    # ------------------------------------------------------------ what all are told

    def topics_deleted(self, topics: Sequence[str]) -> None:
        """Tell all shards, loaded or not: a re-created topic must start empty."""
        others = self._others(topics)
        self.load_all()
        for shards in self._loaded.values():
            for shard in list(shards.values()):
                shard.inform(shard.machine.on_topics_deleted, others)
        for number in self._loading:
            self._missed.setdefault(number, []).extend(others)

    def topics_changed(self, topics: Sequence[str]) -> None:
        """Only shards that are loaded hear of it: the others will see the cluster as it is then."""
        others = self._others(topics)
        for shards in self._loaded.values():
            for shard in list(shards.values()):
                shard.inform(shard.machine.on_topics_changed, others)

    def _others(self, topics: Sequence[str]) -> list[str]:
        """Those that are not this one."""
        own = None if self._topic is None else self._topic.name
        return [topic for topic in topics if topic != own]
