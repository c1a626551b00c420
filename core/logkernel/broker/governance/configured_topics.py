"""The topics that the broker's file names: made when they are absent, brought to what the file says when they exist.

    a broker alone   at its start; what no topic can be ends the start
    a cluster        by the controller: absent ones when it is elected, or as soon as there are enough brokers for their
                     replicas; existing ones when it is elected and alone, as the first broker of a start is. What no
                     topic can be is logged

So what an administrator changes in a running cluster stays as it is when another broker becomes the controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import ClusterImage, Topic
from logkernel.errors import ConfigError, InvalidReplicationFactor, KafkaError, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logkernel.config.sources import TopicSpec

log = logging.getLogger("logkernel.admin")


class ConfiguredTopics:
    """Applies them by way of the controller, as a client would."""

    def __init__(
        self, controller: Controller, image: Callable[[], ClusterImage], commit: Callable[[ControllerResult], Any]
    ) -> None:
        """`image` is what the controller decides by."""
        self._controller = controller
        self._image = image
        self._commit = commit

    def apply(self, topics: Mapping[str, TopicSpec]) -> None:
        """Raises ConfigError, with the topic's line, for what no topic can be."""
        for name, spec in topics.items():
            try:
                self.create(name, spec)
                self.bring(name, spec)
            except KafkaError as error:
                if error.retriable:  # the disk's, not the file's
                    raise
                raise ConfigError(f"{spec.where}: topic {name}: {error}") from error

    def create(self, name: str, spec: TopicSpec) -> None:
        """Create a topic that is absent. Raises `KafkaError`."""
        image = self._image()
        if name not in image.topics:
            made = self._controller.create_topic(image, name, spec.partitions, spec.replication_factor, spec.config)
            self._commit(made)

    def bring(self, name: str, spec: TopicSpec) -> None:
        """Bring a topic to what the file says. Raises `KafkaError`."""
        self._apply_count(self._image().topics[name], spec)
        result = self._controller.apply_topic_settings(self._image(), name, spec.config)
        for setting, (old, new) in self._commit(result).items():
            log.info("setting applied from file: topic=%s %s=%s was=%s", name, setting, new, old)

    def _apply_count(self, topic: Topic, spec: TopicSpec) -> None:
        count = len(topic.partitions)
        if spec.partitions > count:
            from logkernel.requests.topics import CreatePartitionsRequest, CreatePartitionsTopic

            request = CreatePartitionsRequest([CreatePartitionsTopic(topic.name, spec.partitions)])
            result = self._controller.create_partitions(request, self._image())
            (row,) = self._commit(result).results
            if row.error_code:
                raise error_for(row.error_code, row.error_message, about=topic.name)
            log.info("partitions added from file: topic=%s partitions=%d was=%d", topic.name, spec.partitions, count)
        elif spec.partitions not in (-1, count):
            log.warning(
                "%s: topic %s has %d partitions, and keeps them: partitions=%d would take records away",
                *(spec.where, topic.name, count, spec.partitions),
            )


class ClusterTopics:
    """Has the controller of a cluster apply them; every broker has one, as any may be elected."""

    def __init__(self, configured: ConfiguredTopics, topics: Mapping[str, TopicSpec]) -> None:
        self._configured = configured
        self._topics = topics
        self._absent: dict[str, TopicSpec] = {}

    def on_elected(self, brokers: int) -> None:
        """This broker is the controller now, with so many brokers alive."""
        self._absent = dict(self._topics)
        self._create()
        if brokers <= 1:
            for name, spec in self._topics.items():
                if name not in self._absent:
                    self._try(self._configured.bring, name, spec)

    def on_brokers(self) -> None:
        """This broker is the controller, and others came."""
        self._create()

    def _create(self) -> None:
        self._absent = {
            name: spec for name, spec in self._absent.items() if not self._try(self._configured.create, name, spec)
        }

    def _try(self, apply: Callable[[str, TopicSpec], None], name: str, spec: TopicSpec) -> bool:
        """Whether all is done that can be."""
        try:
            apply(name, spec)
        except InvalidReplicationFactor as error:
            log.info("topic from file waits for brokers: topic=%s %s", name, error)
            return False
        except KafkaError as error:
            log.error("%s: topic %s: %s", spec.where, name, error)
            return not error.retriable
        return True
