"""The controller's shell: keeps its changes, folds them, and does to the logs what they ask for."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from logkernel.config.topic import TopicSettings
from logkernel.contracts import Answer, Coordination, ElectionStrategy, MetadataChange, RequestContext
from logkernel.controller.compaction import due
from logkernel.controller.controller import Controller
from logkernel.controller.effects import Outcome
from logkernel.controller.image import ClusterImage, Partition, Topic
from logkernel.controller.internal import internal_topics
from logkernel.controller.names import check_name
from logkernel.controller.producers import ProducerIds
from logkernel.errors import ConfigError, InvalidRequest, KafkaError, error_for
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.config.sources import TopicSpec
    from logkernel.requests.producers import InitProducerIdRequest

log = logging.getLogger("logkernel.admin")


class MetadataManager:
    """Cluster metadata of this broker: `image` is what its changes folded to."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.image = ClusterImage()
        self._coordination: Coordination | None = None
        self.controller = Controller(
            broker.config, broker.node_id, uuid4, internal_topics(broker.kernel.services(), broker.config)
        )
        self._producer_ids = ProducerIds()
        self._snapshot_size = 0
        """Changes of the last snapshot."""
        self._compaction_failed = False

    # ------------------------------------------------------------ life

    def load(self) -> None:
        """Fold what is kept."""
        broker = self._broker
        self._coordination = broker.kernel.coordination(broker.logs.coordination_name, broker.logs.open_state_log)
        self.image = ClusterImage()
        for change in self._coordination.changes():
            self.image.apply(change)
        self.carry_out(self.controller.name_cluster(self.image, broker.logs.cluster_id))
        self.carry_out(self.controller.mark_internal(self.image))
        self._apply_dynamic_config()

    def new_incarnation(self) -> None:
        """The last end was not clean: lead with new epochs, so that readers can tell what a crash may have cut off."""

        def strategy(topic: str) -> tuple[ElectionStrategy, bool]:
            settings = self.topic_settings(topic)
            return self._broker.kernel.election(settings.election), settings.unclean_leader_election_enable

        node = self._broker.node_id
        self.carry_out(self.controller.broker_started(self.image, node, strategy, (node,)))

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
        node = self._broker.node_id
        rows = [Partition((node,), (node,), node) for _ in range(max(parts) + 1)]
        topic = Topic(name, ids.pop() if ids else uuid4(), rows, name in self.controller.internal)
        log.info("topic adopted: topic=%s partitions=%d id=%s", name, len(rows), topic.id)
        return [topic.change()]

    def close(self) -> None:
        if self._coordination is not None:
            self._coordination.close()
            self._coordination = None

    def _keep(self, changes: Sequence[MetadataChange]) -> None:
        if changes:
            assert self._coordination is not None, "admin is not loaded"
            self._coordination.commit(changes)
            self.image.apply_all(changes)
            self.compact()

    def compact(self) -> None:
        """Replace what is kept by a snapshot, if that is worth it. The ids of deleted topics go as well, once no
        folder of theirs can come back."""
        coordination, image = self._coordination, self.image
        assert coordination is not None, "admin is not loaded"
        kept = coordination.kept()
        if self._compaction_failed or not due(kept, max(image.size - len(image.gone), self._snapshot_size)):
            return
        gone = set(image.gone) if self._broker.logs.settle_deletions(self._broker) else set()
        snapshot = [change for change in image.snapshot() if change.kind != "gone" or UUID(change.key) not in gone]
        try:
            coordination.replace(snapshot)
        except (OSError, KafkaError) as error:
            self._compaction_failed = True  # what is kept stays as it is; tried again after the next start
            log.error("metadata log not compacted: error=%s", error)
            return
        self._snapshot_size = len(snapshot)
        image.apply_all([MetadataChange("gone", str(topic_id), None) for topic_id in gone])
        log.info("metadata log compacted: changes=%d were=%d", len(snapshot), kept)

    # ------------------------------------------------------------ decisions

    def carry_out(self, outcome: Outcome) -> Any:
        """Keep the changes, fold them, do the work; returns the response."""
        self._keep(outcome.changes)
        broker, effects = self._broker, outcome.effects
        hook = broker.kernel.hook
        for topic, _ in effects.deleted:
            broker.logs.delete_topic(broker, topic)
            hook.logkernel_topic_deleted(topic=topic)
        if effects.deleted:
            broker.topics_deleted([topic for topic, _ in effects.deleted])
        for topic in effects.created:
            count = len(self.image.topics[topic].partitions)
            broker.logs.create_partitions(broker, topic, 0)
            log.info("topic created: topic=%s partitions=%d", topic, count)
            hook.logkernel_topic_created(topic=topic, partitions=count)
        for topic, first in effects.grown:
            broker.logs.create_partitions(broker, topic, first)
        if effects.created or effects.grown:
            broker.topics_changed([*effects.created, *(topic for topic, _ in effects.grown)])
        for change in effects.leaders:
            hook.logkernel_leader_changed(
                topic=change.topic, partition=change.partition, leader=change.leader, leader_epoch=change.leader_epoch
            )
        if effects.brokers_configured:
            self._apply_dynamic_config()
        for topic in effects.topics_configured:
            self._reconfigure(topic)
        return outcome.response

    def _apply_dynamic_config(self) -> None:
        broker = self._broker
        known = broker.config.warnings
        broker.config = self.controller.config = self.controller.dynamic_config(self.image)
        for warning in broker.config.warnings:
            if warning not in known:
                log.warning("%s", warning)
        for topic in self.image.topics:
            self._reconfigure(topic)

    def _reconfigure(self, topic: str) -> None:
        settings = self.topic_settings(topic)
        for partition in range(len(self.image.topics[topic].partitions)):
            replica = self._broker.replicas.get(TopicPartition(topic, partition))
            if replica is not None:
                replica.configure(settings)

    # ------------------------------------------------------------ for the shell and the embedded API

    def topic_settings(self, topic: str) -> TopicSettings:
        return self._broker.config.topic_settings(self.image.topic_config(topic))

    def check_name(self, name: str) -> None:
        check_name(name)

    def create(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        *,
        replication_factor: int = -1,
    ) -> None:
        """Create a topic (-1: the broker's default); raises the error that a client would be answered."""
        self.carry_out(self.controller.create_topic(self.image, name, partitions, replication_factor, config))

    def create_internal(self, name: str, partitions: int = -1) -> None:
        """Create the topic of a service, as it is declared."""
        self.carry_out(self.controller.create_internal(name, self.image, partitions))

    def auto_create(self, name: str) -> None:
        """What `auto.create.topics.enable` does for a client that asks for a topic."""
        self.carry_out(self.controller.auto_create(name, self.image))

    def delete(self, name: str) -> None:
        self.carry_out(self.controller.delete_topic(self.image, name))

    def apply_configured_topics(self) -> None:
        """Topics that the file names are created when absent; those that exist get its settings and the partitions that
        they lack. Raises ConfigError, with the topic's line, for what no topic can be."""
        for name, spec in self._broker.config.topics.items():
            try:
                self._apply_configured(name, spec)
            except KafkaError as error:
                if error.retriable:  # the disk's, not the file's
                    raise
                raise ConfigError(f"{spec.where}: topic {name}: {error}") from error

    def _apply_configured(self, name: str, spec: TopicSpec) -> None:
        topic = self.image.topics.get(name)
        if topic is None:
            self.create(name, spec.partitions, spec.config, replication_factor=spec.replication_factor)
            return
        self._apply_count(topic, spec)
        outcome = self.controller.apply_topic_settings(self.image, name, spec.config)
        for setting, (old, new) in self.carry_out(outcome).items():
            log.info("setting applied from file: topic=%s %s=%s was=%s", name, setting, new, old)

    def _apply_count(self, topic: Topic, spec: TopicSpec) -> None:
        count = len(topic.partitions)
        if spec.partitions > count:
            from logkernel.requests.topics import CreatePartitionsRequest, CreatePartitionsTopic

            request = CreatePartitionsRequest([CreatePartitionsTopic(topic.name, spec.partitions)])
            (row,) = self.carry_out(self.controller.create_partitions(request, self.image)).results
            if row.error_code:
                raise error_for(row.error_code, row.error_message or topic.name)
            log.info("partitions added from file: topic=%s partitions=%d was=%d", topic.name, spec.partitions, count)
        elif spec.partitions not in (-1, count):
            log.warning(
                "%s: topic %s has %d partitions, and keeps them: partitions=%d would take records away",
                *(spec.where, topic.name, count, spec.partitions),
            )

    def is_internal(self, topic: str) -> bool:
        """Whether a service keeps its state there."""
        known = self.image.topics.get(topic)
        return known is not None and (known.internal or topic in self.controller.internal)

    def may_produce(self, client_id: str, topic: str) -> bool:
        """Whether a client may write to a topic in which a service keeps its state."""
        declared = self.controller.internal.get(topic)
        return declared is not None and client_id in declared.written_by

    def reserve_producer_ids(self, largest: int) -> None:
        """Logs hold producers up to this id: those of an adopted folder were given by another cluster."""
        if largest >= self.image.next_producer_id:
            self._keep([MetadataChange("producer_ids", "", {"next": largest + 1})])

    def next_producer_id(self) -> int:
        """An id that was never given before, also after a crash: a block is kept before its first id is used."""
        taken = self._producer_ids.take()
        while taken is None:
            self._producer_ids.refill(self.carry_out(self.controller.allocate_producer_ids(self.image)))
            taken = self._producer_ids.take()
        return taken


# ---------------------------------------------------------------- requests


def create_topics(broker: Broker, request: Any, context: RequestContext, answer: Answer) -> None:
    answer(broker.metadata.carry_out(broker.metadata.controller.create_topics(request, broker.metadata.image)))


def delete_topics(broker: Broker, request: Any, context: RequestContext, answer: Answer) -> None:
    answer(broker.metadata.carry_out(broker.metadata.controller.delete_topics(request, broker.metadata.image)))


def create_partitions(broker: Broker, request: Any, context: RequestContext, answer: Answer) -> None:
    answer(broker.metadata.carry_out(broker.metadata.controller.create_partitions(request, broker.metadata.image)))


def init_producer_id(broker: Broker, request: InitProducerIdRequest, context: RequestContext, answer: Answer) -> None:
    """A new id for an idempotent producer, where no transaction coordinator is hosted (`broker.FALLBACKS`)."""
    from logkernel.requests.producers import InitProducerIdResponse

    response = InitProducerIdResponse(producer_id=-1, producer_epoch=-1)
    if request.transactional_id is not None:
        response.error_code = InvalidRequest.code
        log.warning(
            "transactions are not served: client_id=%s transactional_id=%s", context.client_id, request.transactional_id
        )
        answer(response)
        return
    try:
        response.producer_id, response.producer_epoch = broker.metadata.next_producer_id(), 0
    except KafkaError as error:
        response.error_code = error.code
    answer(response)
