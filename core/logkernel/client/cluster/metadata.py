"""What a client knows of the cluster, and when it asks again. Pure.

    due when                                             by
    a topic is wanted that is not known                  want
    a leadership error, a lost connection                request_update
    the last answer is older than metadata.max.age.ms    time
    all topics are wanted, where it was some before      want_all

After a failure it waits retry.backoff.ms, doubled each time. A leader with an older epoch than the one
known is not believed (KIP-320). Where no broker can be reached for
metadata.recovery.rebootstrap.trigger.ms, or a broker says so, the client begins again with its
bootstrap servers (KIP-899, KIP-1102); topics are kept, their leaders forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any
from uuid import UUID

from attrs import define, field

from logkernel.errors import (
    InvalidTopicException,
    LeaderNotAvailable,
    RebootstrapRequired,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from logkernel.peer.backoff import Backoff
from logkernel.requests.cluster import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from logkernel.vocabulary import NO_ID

FATAL_TOPIC_ERRORS = frozenset({InvalidTopicException.code, TopicAuthorizationFailed.code})


@define
class TopicInfo:
    """One topic. `leaders[p]` is a node id or -1; `epochs[p]` the leader's epoch or -1."""

    name: str
    id: UUID = NO_ID
    leaders: list[int] = field(factory=list)
    epochs: list[int] = field(factory=list)
    error_code: int = 0
    used_ms: int = 0

    @property
    def available(self) -> list[int]:
        """Partitions with a leader, ascending."""
        return [index for index, leader in enumerate(self.leaders) if leader >= 0]


class Metadata:
    """See the module."""

    def __init__(
        self, settings: Mapping[str, Any], bootstrap: Iterable[tuple[str, int]], random: Random, *, create: bool = True
    ) -> None:
        self.brokers: dict[int, tuple[str, int]] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.names: dict[UUID, str] = {}
        """Topic id → name."""
        self.everything = False
        """Whether all topics are requested, as a pattern subscription needs their names."""
        self.known: dict[str, bool] = {}
        """Topic name → whether it is internal, of all that there were when `everything` was last answered."""
        self.controller_id = -1
        self.cluster_id: str | None = None
        self.version = 0
        """Grows with everything that is learned."""
        self.updates = 0
        """Answers received."""
        self._bootstrap = list(bootstrap)
        self._create = create
        self._max_age_ms: int = settings["metadata.max.age.ms"]
        self._max_idle_ms: int = settings.get("metadata.max.idle.ms", 2**62)
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], random)
        self._trigger_ms: int = settings["metadata.recovery.rebootstrap.trigger.ms"]
        self._rebootstraps: bool = settings["metadata.recovery.strategy"] == "rebootstrap"
        self._wanted = True
        self._asked_ms = -(2**62)
        self.answered_ms = -(2**62)
        self._failing_since_ms: int | None = None
        self._attempts = 0
        self._asking = False
        self._asked: frozenset[str] = frozenset()
        """The topics of the request that is under way."""
        self._asked_all = False
        self.bootstrap()

    def bootstrap(self) -> None:
        """Only the bootstrap servers are known, under negative ids."""
        self.brokers = {-1 - index: place for index, place in enumerate(self._bootstrap)}
        for topic in self.topics.values():
            topic.leaders = [-1] * len(topic.leaders)
        self.version += 1

    def rebootstrap(self) -> bool:
        """Begin again where the settings allow it; whether it was done."""
        if not self._rebootstraps or not self._bootstrap:
            return False
        self.bootstrap()
        self._wanted, self._failing_since_ms = True, None
        return True

    # ------------------------------------------------------------ topics

    def want(self, name: str, now_ms: int) -> TopicInfo:
        """What is known of a topic in use; a new one is asked for."""
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = TopicInfo(name)
            self._wanted = True
        topic.used_ms = now_ms
        return topic

    def forget_idle(self, now_ms: int, busy: Iterable[str] = ()) -> None:
        kept = set(busy)
        for name in [
            name
            for name, topic in self.topics.items()
            if now_ms - topic.used_ms >= self._max_idle_ms and name not in kept
        ]:
            topic = self.topics.pop(name)
            self.names.pop(topic.id, None)
            self.version += 1

    def leader(self, topic: str, partition: int) -> int:
        """The leader's node id, or -1."""
        found = self.topics.get(topic)
        if found is None or partition >= len(found.leaders):
            return -1
        return found.leaders[partition]

    def set_leader(self, topic: str, partition: int, leader: int, epoch: int) -> None:
        """A broker named the new leader in passing (KIP-951)."""
        found = self.topics.get(topic)
        if found is not None and partition < len(found.leaders) and epoch > found.epochs[partition]:
            found.leaders[partition], found.epochs[partition] = leader, epoch
            self.version += 1

    # ------------------------------------------------------------ when to ask

    def want_all(self, everything: bool) -> None:
        """Whether metadata of all topics is needed."""
        if everything and not self.everything:
            self._wanted = True
        self.everything = everything

    def request_update(self) -> None:
        self._wanted = True

    @property
    def update_wanted(self) -> bool:
        return self._wanted or self._asking

    def due_ms(self) -> int | None:
        """When the next request is due; None while one is under way."""
        if self._asking:
            return None
        wanted_ms = -(2**62) if self._wanted else self.answered_ms + self._max_age_ms
        if self._attempts:
            return max(wanted_ms, self._asked_ms + self._backoff.delay_ms(self._attempts - 1))
        return wanted_ms

    def due(self, now_ms: int) -> bool:
        due_ms = self.due_ms()
        return due_ms is not None and due_ms <= now_ms

    def ask(self, now_ms: int) -> MetadataRequest:
        """The request; `on_response` or `on_failure` must follow."""
        self._asking, self._wanted, self._asked_ms = True, False, now_ms
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        self._asked, self._asked_all = frozenset(self.topics), self.everything
        if self.everything:
            return MetadataRequest(topics=None, allow_auto_topic_creation=False)
        topics = [MetadataRequestTopic(name=name) for name in sorted(self.topics)]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=self._create)

    def on_failure(self, now_ms: int) -> None:
        """No answer came; also called where no broker could be asked at all."""
        self._asking, self._wanted = False, True
        self._attempts += 1
        self._asked_ms = now_ms
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        if now_ms - self._failing_since_ms >= self._trigger_ms:
            self.rebootstrap()

    def on_response(self, response: MetadataResponse, now_ms: int) -> None:
        if response.error_code == RebootstrapRequired.code:
            self._asking, self._attempts = False, self._attempts + 1
            self.rebootstrap()
            return
        if not response.brokers:
            self.on_failure(now_ms)
            return
        self._asking, self.answered_ms, self._failing_since_ms = False, now_ms, None
        self.updates += 1
        self.version += 1
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self.controller_id = response.controller_id
        self.cluster_id = response.cluster_id
        if self._asked_all:
            self.known = {row.name: row.is_internal for row in response.topics if row.name and not row.error_code}
        again = [self._fold(row) for row in response.topics]
        missing = set(self.topics) - {row.name for row in response.topics}
        # A topic that was wanted after the request went out is asked for at once, any other after a wait.
        waits = any(again) or bool(missing & self._asked)
        self._wanted = self._wanted or waits or bool(missing)
        self._attempts = self._attempts + 1 if waits else 0

    def _fold(self, row: MetadataResponseTopic) -> bool:
        """Take one topic over; whether it must be asked for again."""
        topic = self.topics.get(row.name or "")
        if topic is None:
            return False
        topic.error_code = row.error_code
        if row.error_code:
            if row.error_code == UnknownTopicOrPartition.code:
                topic.leaders, topic.epochs = [], []
            return row.error_code not in FATAL_TOPIC_ERRORS
        same = row.topic_id == topic.id
        if not same:
            self.names.pop(topic.id, None)
            topic.id = row.topic_id
            if row.topic_id != NO_ID:
                self.names[row.topic_id] = topic.name
        count = len(row.partitions)
        leaders, epochs = [-1] * count, [-1] * count
        old = topic.epochs
        for part in row.partitions:
            index = part.partition_index
            if not 0 <= index < count:
                continue
            if same and index < len(old) and 0 <= part.leader_epoch < old[index]:
                leaders[index], epochs[index] = topic.leaders[index], old[index]
                continue
            leaders[index] = part.leader_id if part.error_code != LeaderNotAvailable.code else -1
            epochs[index] = part.leader_epoch
        topic.leaders, topic.epochs = leaders, epochs
        return any(leader < 0 for leader in leaders)
