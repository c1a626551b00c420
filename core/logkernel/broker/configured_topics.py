"""The topics that the broker's file names: made when they are absent, brought to what the file says when they exist."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logkernel.broker.metadata_manager import MetadataManager
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import Topic
from logkernel.errors import ConfigError, KafkaError, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logkernel.config.sources import TopicSpec

log = logging.getLogger("logkernel.admin")


class ConfiguredTopics:
    """Applies them by way of the controller, as a client would."""

    def __init__(self, metadata: MetadataManager, commit: Callable[[ControllerResult], Any]) -> None:
        self._metadata = metadata
        self._commit = commit

    def apply(self, topics: Mapping[str, TopicSpec]) -> None:
        """Raises ConfigError, with the topic's line, for what no topic can be."""
        for name, spec in topics.items():
            try:
                self._apply(name, spec)
            except KafkaError as error:
                if error.retriable:  # the disk's, not the file's
                    raise
                raise ConfigError(f"{spec.where}: topic {name}: {error}") from error

    def _apply(self, name: str, spec: TopicSpec) -> None:
        controller, image = self._metadata.controller, self._metadata.image
        topic = image.topics.get(name)
        if topic is None:
            self._commit(controller.create_topic(image, name, spec.partitions, spec.replication_factor, spec.config))
            return
        self._apply_count(topic, spec)
        result = controller.apply_topic_settings(image, name, spec.config)
        for setting, (old, new) in self._commit(result).items():
            log.info("setting applied from file: topic=%s %s=%s was=%s", name, setting, new, old)

    def _apply_count(self, topic: Topic, spec: TopicSpec) -> None:
        count = len(topic.partitions)
        if spec.partitions > count:
            from logkernel.requests.topics import CreatePartitionsRequest, CreatePartitionsTopic

            request = CreatePartitionsRequest([CreatePartitionsTopic(topic.name, spec.partitions)])
            result = self._metadata.controller.create_partitions(request, self._metadata.image)
            (row,) = self._commit(result).results
            if row.error_code:
                raise error_for(row.error_code, row.error_message, about=topic.name)
            log.info("partitions added from file: topic=%s partitions=%d was=%d", topic.name, spec.partitions, count)
        elif spec.partitions not in (-1, count):
            log.warning(
                "%s: topic %s has %d partitions, and keeps them: partitions=%d would take records away",
                *(spec.where, topic.name, count, spec.partitions),
            )
