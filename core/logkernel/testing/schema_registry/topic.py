"""Keeps a registry in a compacted topic of a broker, as Confluent's registry does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from logkernel.errors import ConfigError, KafkaError, LogkernelError, TopicAlreadyExists
from logkernel.remote import connect
from logkernel.testing.schema_registry import errors, records
from logkernel.testing.schema_registry.catalog import Catalog, Change
from logkernel.vocabulary import TopicPartition

TOPIC: Final = "_schemas"
POLL_S: Final = 5.0


class SchemasTopic:
    """The topic in the cluster behind `bootstrap_servers`. It has one registry at a time."""

    def __init__(self, bootstrap_servers: str, name: str = TOPIC, **settings: Any) -> None:
        """Creates the topic if it is not there. Raises `ConfigError` if records could vanish from it."""
        self._name = name
        self._log = connect(bootstrap_servers, **settings)
        try:
            self._create()
            self._producer = self._log.producer(acks="all", enable_idempotence=True)
        except BaseException:
            self._log.close()
            raise

    def _create(self) -> None:
        try:
            self._log.create_topic(self._name, 1, cleanup_policy="compact")
        except TopicAlreadyExists:
            with self._log.admin() as admin:
                (config,) = admin.describe_configs(("topic", self._name)).values()
            policy = config["cleanup.policy"].value
            if policy != "compact":
                raise ConfigError(
                    f"topic {self._name} has cleanup.policy={policy}, by which schemas would vanish;"
                    " set it to compact, or delete the topic"
                ) from None

    def load(self) -> Catalog:
        """What the topic holds. Raises `ConfigError` for a record that no registry wrote."""
        catalog = Catalog()
        partition = TopicPartition(self._name, 0)
        with self._log.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                for record in consumer.poll(POLL_S):
                    try:
                        changes = records.decoded(record.key, record.value, catalog)
                    except ValueError as error:
                        raise ConfigError(
                            f"the record at offset {record.offset} of {self._name} is not a schema registry's:"
                            f" {error}; delete the topic, or name another one"
                        ) from error
                    for change in changes:
                        catalog.apply(change)
        return catalog

    def keep(self, change: Change) -> None:
        """Returns when the change is in all in-sync replicas. Raises `RegistryError` otherwise."""
        key, value = records.encoded(change)
        try:
            self._producer.send(self._name, value, key, partition=0).result()
        except KafkaError as error:
            raise errors.store_failed(str(error)) from error

    def close(self) -> None:
        with suppress(LogkernelError):  # its broker is gone, and with it nothing: `keep` has waited for each change
            self._producer.close()
        self._log.close()
