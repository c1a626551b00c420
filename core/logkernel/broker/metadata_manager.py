"""The cluster's metadata on this broker: the changes that are kept, and the image that they fold to.

    result = metadata.controller.create_topics(request, metadata.image)   decides; nothing has happened yet
    effects = metadata.commit(result)                                     keeps and folds the changes
                                                                          returns what is to be done about them

Nothing here touches a log or a replica: `Broker.commit` carries the effects out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from logkernel.broker.metadata_compaction import MetadataCompaction
from logkernel.broker.runtime import Runtime
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Coordination, ElectionStrategy, MetadataChange, SharedCoordination, StateLog
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import WATCHED, ClusterImage, Partition, Topic
from logkernel.controller.internal import internal_topics
from logkernel.controller.producers import ProducerIds
from logkernel.vocabulary import TopicPartition, format_id

log = logging.getLogger("logkernel.admin")

NAME: Final = frozenset({"cluster"})
"""The kind of the cluster's name."""
TOPICS: Final = frozenset({"topic"})
KEPT_KINDS: Final = frozenset({"config", "acl", "scram", "quota", "token", "rack"})
"""What brokers set by themselves, for all."""


class MetadataManager:
    """Owns the image, the coordination that keeps its changes, and the producer ids that this broker may give."""

    def __init__(self, runtime: Runtime, sync_deletions: Callable[[], bool], cluster_size: int | None = 1) -> None:
        """`sync_deletions` makes the removal of deleted topics' folders durable; False where one may come back.
        `cluster_size` is the number of brokers that the cluster is planned to have, None if it is not known."""
        self._runtime = runtime
        self._sync_deletions = sync_deletions
        self.image = ClusterImage()
        """What the changes folded to; the same object for the broker's life."""
        internal = internal_topics(runtime.kernel.services(), runtime.config)
        chance = runtime.random
        self.controller = Controller(
            runtime.config, runtime.node_id, chance.uuid, internal, runtime.kernel.placement, chance.below, cluster_size
        )
        self._coordination: Coordination | None = None
        self.on_quotas: Callable[[], None] = lambda: None
        """Called when client quotas may have changed."""
        self._left_out: dict[str, dict[str, str]] = {}
        """Topic → its settings that are not in force, and why, as the log has it."""
        self._producer_ids = ProducerIds()
        self._compaction = MetadataCompaction()

    # ------------------------------------------------------------ life

    def load(self, coordination: str, open_log: Callable[[], StateLog], cluster_id: str) -> None:
        """Fold what is kept, and take the settings in it into force."""
        self._coordination = self._runtime.kernel.coordination(coordination, open_log)
        for change in self._coordination.changes():
            self.image.apply(change)
        self._keep(self.controller.name_cluster(self.image, cluster_id).changes)
        self._keep(self.controller.mark_internal(self.image).changes)
        self.apply_dynamic_config()
        self.on_quotas()

    def join(self, coordination: SharedCoordination) -> str:
        """In a cluster: its id, which the first broker gives it."""
        self.image.apply_all(coordination.changes(NAME))
        named = self.controller.name_cluster(self.image, format_id(self._runtime.random.uuid())).changes
        if named:
            coordination.commit(named)
            self.image.apply_all(coordination.changes(NAME))  # another broker may have been first: its name stays
        return self.image.cluster_id

    def load_shared(self, coordination: SharedCoordination) -> None:
        """In a cluster: fold the changes that every broker watches; topics and brokers come from the controller."""
        self.image.apply_all(coordination.changes(WATCHED))
        self.apply_dynamic_config()
        self.on_quotas()

    def missed(self, coordination: SharedCoordination) -> list[MetadataChange]:
        """In a cluster: what was set, changed and taken away of `KEPT_KINDS` since news were heard last."""
        there = {(change.kind, change.key): change for change in coordination.changes(KEPT_KINDS)}
        known = (change for change in self.image.snapshot() if change.kind in KEPT_KINDS)
        gone = [
            MetadataChange(change.kind, change.key, None) for change in known if (change.kind, change.key) not in there
        ]
        return [*gone, *there.values()]

    @staticmethod
    def shared_topics(coordination: SharedCoordination) -> dict[str, UUID]:
        """In a cluster: the topics that there are, and their ids."""
        values = {change.key: change.value for change in coordination.changes(TOPICS) if change.kind == "topic"}
        return {topic: UUID(value["id"]) for topic, value in values.items() if value is not None}

    def on_watched(self, changes: Sequence[MetadataChange]) -> list[str] | None:
        """In a cluster: changes of watched kinds were committed. Returns the topics whose settings are others now; None
        where it may be any."""
        self._fold(changes)
        keys = [change.key for change in changes if change.kind == "config"]
        if any(key.startswith("broker:") for key in keys):
            self.apply_dynamic_config()
            return None
        return [key.removeprefix("topic:") for key in keys if key.startswith("topic:")]

    def close(self) -> None:
        if self._coordination is not None:
            self._coordination.close()
            self._coordination = None

    # ------------------------------------------------------------ changes

    def commit(self, result: ControllerResult) -> Effects:
        """Keep the changes as one and fold them; returns what is to be done about them. Where it raises, nothing
        happened."""
        self._keep(result.changes)
        return result.effects

    def _keep(self, changes: Sequence[MetadataChange]) -> None:
        if changes:
            assert self._coordination is not None, "the metadata is not loaded"
            self._coordination.commit(changes)
            self._fold(changes)
            self.compact()

    def _fold(self, changes: Sequence[MetadataChange]) -> None:
        self.image.apply_all(changes)
        if any(change.kind == "quota" for change in changes):
            self.on_quotas()

    def compact(self) -> None:
        """Replace what is kept by a snapshot, if that is worth it. The ids of deleted topics go as well, once no
        folder of theirs can come back."""
        coordination, image = self._coordination, self.image
        assert coordination is not None, "the metadata is not loaded"
        if not self._compaction.is_due(coordination, image.size - len(image.gone)):
            return
        gone = set(image.gone) if self._sync_deletions() else set()
        snapshot = [change for change in image.snapshot() if change.kind != "gone" or UUID(change.key) not in gone]
        kept = coordination.kept()
        if not self._compaction.replace(coordination, snapshot):
            return
        image.apply_all([MetadataChange("gone", str(topic_id), None) for topic_id in gone])
        log.info("metadata log compacted: changes=%d were=%d", len(snapshot), kept)

    # ------------------------------------------------------------ what a start finds

    def adopt(self, found: Mapping[TopicPartition, UUID | None]) -> list[TopicPartition]:
        """Make topics of partition folders that a Kafka left; returns the folders of topics deleted here."""
        strangers: dict[str, dict[int, UUID | None]] = {}
        doomed = []
        for name, topic_id in found.items():
            topic = self.image.topics.get(name.topic)
            known = topic is not None and (topic_id is None or topic.id == topic_id)
            if not known and (topic_id in self.image.gone or topic_id in self.image.names):
                doomed.append(name)
            elif topic is None:
                strangers.setdefault(name.topic, {})[name.partition] = topic_id
        self._keep([change for topic_name, parts in strangers.items() for change in self._adopted(topic_name, parts)])
        return doomed

    def _adopted(self, name: str, parts: Mapping[int, UUID | None]) -> list[MetadataChange]:
        ids = {topic_id for topic_id in parts.values() if topic_id is not None}
        if len(ids) > 1:
            log.error("partitions of topic %s name different ids %s: not adopted", name, sorted(map(str, ids)))
            return []
        node = self._runtime.node_id
        rows = [Partition((node,), (node,), node) for _ in range(max(parts) + 1)]
        topic = Topic(name, ids.pop() if ids else self._runtime.random.uuid(), rows, name in self.controller.internal)
        log.info("topic adopted: topic=%s partitions=%d id=%s", name, len(rows), topic.id)
        return [topic.change()]

    def new_incarnation(self) -> ControllerResult:
        """The last stop was not clean: lead in new leader epochs, so that readers detect lost records."""

        def strategy(topic: str) -> tuple[ElectionStrategy, bool]:
            settings = self.topic_settings(topic)
            found = self._runtime.kernel.election(settings.election, settings.plugin)
            return found, settings.unclean_leader_election_enable

        node = self._runtime.node_id
        return self.controller.broker_started(self.image, node, strategy, (node,))

    # ------------------------------------------------------------ settings

    def apply_dynamic_config(self) -> None:
        """Take the cluster's settings of this broker into force: `Runtime.config` is replaced."""
        known = self._runtime.config.warnings
        self._runtime.config = self.controller.config = self.controller.dynamic_config(self.image)
        for warning in self._runtime.config.warnings:
            if warning not in known:
                log.warning("%s", warning)

    def topic_settings(self, topic: str) -> TopicSettings:
        """The settings in force of a topic, or those that a new one would have."""
        settings, left_out = self._runtime.config.kept_topic_settings(self.image.topic_config(topic))
        if left_out != self._left_out.get(topic, {}):
            self._left_out[topic] = left_out
            for why in left_out.values():
                log.error("a topic's setting is left out: topic=%s error=%s", topic, why)
        return settings

    # ------------------------------------------------------------ questions

    def partition_count(self, topic: str) -> int | None:
        found = self.image.topics.get(topic)
        return None if found is None else len(found.partitions)

    def is_internal(self, topic: str) -> bool:
        """Whether a service keeps its state there."""
        known = self.image.topics.get(topic)
        return known is not None and (known.internal or topic in self.controller.internal)

    def may_produce(self, client_id: str, topic: str) -> bool:
        """Whether a client may write to a topic in which a service keeps its state."""
        declared = self.controller.internal.get(topic)
        return declared is not None and client_id in declared.written_by

    # ------------------------------------------------------------ producer ids

    def reserve_producer_ids(self, largest: int) -> None:
        """Logs hold producers up to this id: those of an adopted folder were given by another cluster."""
        if largest >= self.image.next_producer_id:
            self._keep([MetadataChange("producer_ids", "", {"next": largest + 1})])

    def next_producer_id(self) -> int:
        """An id that was never given before, also after a crash: a block is kept before its first id is used. For a
        broker that stands alone."""
        taken = self._producer_ids.take()
        while taken is None:
            result = self.controller.allocate_producer_ids(self.image)
            self._keep(result.changes)
            self._producer_ids.refill(result.response)
            taken = self._producer_ids.take()
        return taken
