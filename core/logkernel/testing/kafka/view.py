"""What a test asks of its broker: records, groups, and what clients asked. `Kafka` and `KafkaNamespace` are views.

A view translates the names that a test uses: `KafkaNamespace` has topics and groups of its own in a broker that many
tests share, `Kafka` has the broker for itself and leaves names as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from logkernel.config.nearest import nearest
from logkernel.config.values import render
from logkernel.errors import (
    ConfigError,
    InvalidConfig,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    no_partition,
)
from logkernel.testing.kafka.broker import BrokerClock, LogInside
from logkernel.testing.kafka.faults import AskedFault, FaultCalls
from logkernel.testing.kafka.matching import ANYTHING, differences, not_found
from logkernel.testing.kafka.records import KafkaRecord, encoded
from logkernel.testing.kafka.requests import KeptRequests
from logkernel.testing.kafka.security import ListenerSecurity
from logkernel.testing.kafka.waiting import LOOK_AGAIN_S, wait_for
from logkernel.vocabulary import GROUP_STATES, Record, RecordMetadata

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.groups import GroupDescription
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.producer.producer import Producer

Topics = Mapping[str, int | Mapping[str, Any]] | Iterable[str]
WITHIN_S: Final = 10.0
PARTITIONS: Final = "partitions"
COUNTED: Final = (PARTITIONS, "partitioner")
"""What is no setting of a topic, and the one that is spelt almost like it."""
MOST_TOLD: Final = 5
"""Partitions that an error names."""
TOPICS_ARE: Final = 'write names, {"orders": 3}, or settings: {"orders": {"partitions": 3, "retention.ms": 1000}}'


class KafkaView(ABC):
    """See the module. Methods may be called from any thread."""

    clock: BrokerClock
    """Its `advance` moves the broker's time."""
    faults: FaultCalls[AskedFault]
    """What goes wrong with clients' requests."""
    security: ListenerSecurity
    """How clients log in."""
    look_again_s = LOOK_AGAIN_S
    """How often the broker is asked for what is waited for."""

    # ------------------------------------------------------------ what a kind of view is

    @property
    @abstractmethod
    def log(self) -> LogInside:
        """The open log inside."""

    @property
    def process_log(self) -> str:
        """What the broker's process wrote to stderr, "" where it is this process."""
        return ""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """ "host:port", for clients of any kind. Raises `LogkernelError` without sockets."""

    @property
    @abstractmethod
    def requests(self) -> KeptRequests:
        """What clients asked, decoded, the oldest first; the newest 10,000 are kept."""

    def topic(self, name: str) -> str:
        """The broker's name of the topic that this test calls `name`."""
        return name

    def group(self, name: str) -> str:
        """The broker's name of the group, or of the transactional id, that this test calls `name`."""
        return name

    def called(self, topic: str) -> str:
        """What this test calls the broker's topic: the reverse of `topic`."""
        return topic

    def client_settings(
        self,
        user: str | None = None,
        *,
        mechanism: str | None = None,
        password: str | None = None,
        spelling: str = "kafka",
    ) -> dict[str, str]:
        """What a client sets to connect, and to log in as `user` (by default the first) by `mechanism` (PLAIN,
        SCRAM-SHA-256 or SCRAM-SHA-512); bootstrap.servers is among it. `spelling` is Kafka's or librdkafka's.

        With `password` it is that one, right or wrong, and any user. Raises `ConfigError` for a user that the broker
        does not know, `LogkernelError` without sockets.
        """
        return self.security.client(self.bootstrap_servers, user, mechanism, password, spelling)

    # ------------------------------------------------------------ our own clients

    def producer(self, **settings: Any) -> Producer:
        """Our own producer; without a socket, if the broker is in this process.

        Keywords are Kafka's settings with `_` for `.`.
        """
        return self.log.producer(**settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer:
        """Our own consumer; without a socket, if the broker is in this process.

        Keywords are Kafka's settings with `_` for `.`.
        """
        names = [self.topic(name) for name in topics]
        return self.log.consumer(*names, group=None if group is None else self.group(group), **settings)

    def admin(self, **settings: Any) -> Admin:
        """Our own admin client; without a socket, if the broker is in this process."""
        return self.log.admin(**settings)

    # ------------------------------------------------------------ topics and records

    def create_topic(
        self, name: str, partitions: int = -1, *, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        """Create a topic. `config` has Kafka's names; keywords have `_` for `.`. Raises what
        `EmbeddedLog.create_topic` does."""
        wanted = {key: render(value) for key, value in (config or {}).items()}
        try:
            self.log.create_topic(self.topic(name), partitions, config=wanted, **settings)
        except InvalidConfig as error:
            if meant := next((each for each in (*wanted, *settings) if nearest(each, COUNTED) == PARTITIONS), None):
                raise InvalidConfig(f"topic {name} has no setting {meant!r}; did you mean {PARTITIONS!r}?") from error
            raise

    def create_topics(self, topics: Topics) -> None:
        """Create topics: names, or name → partitions, or name → settings of the topic with `partitions` among them."""
        for name, wanted in specs(topics):
            self.create_topic(name, **wanted)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises `UnknownTopicOrPartition`."""
        self.log.delete_topic(self.topic(name))

    @property
    def topics(self) -> dict[str, int]:
        """The broker's name of each topic → number of partitions, without internal topics."""
        return self.log.topics()

    def produce(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        headers: Mapping[str, bytes | str | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int = -1,
    ) -> RecordMetadata:
        """Write one record; returns its partition and offset. A missing topic is created.

        `value`, `key` and headers are bytes, text for UTF-8, or None; a value or key of another type is written as
        JSON. Raises `TypeError` for what JSON cannot express, and `KafkaError` for what the broker refuses.
        """
        _check_headers(headers)
        pairs = tuple((name, encoded(text, f"header {name!r}")) for name, text in (headers or {}).items())
        record = Record(encoded(key, "key"), encoded(value, "value"), pairs, timestamp_ms)
        if self.topic(topic) not in self.topics:
            self._create_if_missing(topic)
        return self.log.append_many(self.topic(topic), [record], partition=partition)[0]

    def _create_if_missing(self, topic: str) -> None:
        try:
            self.create_topic(topic)
        except TopicAlreadyExists:  # a client was faster
            return

    def records(
        self, topic: str, partition: int | None = None, *, isolation: str = "read_committed"
    ) -> list[KafkaRecord]:
        """The records that lie in a topic, partition by partition. Raises `UnknownTopicOrPartition`.

        With `isolation` "read_uncommitted" those of open and aborted transactions are among them.
        """
        return list(self.iterate(topic, partition, isolation=isolation))

    def iterate(
        self,
        topic: str,
        partition: int | None = None,
        offset: int | None = None,
        *,
        isolation: str = "read_committed",
    ) -> Iterator[KafkaRecord]:
        """As `records`, read as they are asked for; of a partition maybe from an offset on."""
        if partition is None and (missing := self._missing(topic)):
            raise UnknownTopicOrPartition(missing)
        numbers = self._numbers(topic, partition)
        return (row for number in numbers for row in self._read(topic, number, isolation, offset))

    def _numbers(self, topic: str, partition: int | None) -> Iterable[int]:
        return range(self.topics.get(self.topic(topic), 0)) if partition is None else [partition]

    def _read(self, topic: str, partition: int, isolation: str, start: int | None = None) -> Iterable[KafkaRecord]:
        name = self.topic(topic)
        for row in self.log.read(name, partition, start, isolation=isolation):
            yield KafkaRecord(name, partition, row.offset, row.key, row.value, row.headers, row.timestamp_ms)

    def assert_produced(
        self,
        topic: str,
        *,
        key: Any = ANYTHING,
        value: Any = ANYTHING,
        headers: Mapping[str, Any] | None = None,
        partition: int | None = None,
        within: float = 0,
        isolation: str = "read_committed",
    ) -> KafkaRecord:
        """Wait until a record is there that matches; returns the first one. `within` is in seconds.

        What `key`, `value` and each of `headers` may be is said in `matching`. Raises `AssertionError`, which shows
        the closest record and where it differs.
        """

        _check_headers(headers)

        def differs(record: KafkaRecord) -> list[str]:
            return differences(record, key=key, value=value, headers=headers)

        seen: list[KafkaRecord] = []
        positions: dict[int, int] = {}

        def look() -> KafkaRecord | None:
            for number in self._numbers(topic, partition):
                for record in self._read(topic, number, isolation, positions.get(number)):
                    positions[number] = record.offset + 1
                    seen.append(record)
                    if not differs(record):
                        return record
            return None

        def problem() -> str:
            expected = {
                "key": key,
                "value": value,
                **{f"header {name}": each for name, each in (headers or {}).items()},
            }
            where = topic if partition is None else f"{topic}-{partition}"
            missing = self._missing(topic)
            return f"{missing or f'no record in {where} matches'}\n{not_found(seen, expected, differs)}"

        return wait_for(look, within, problem, self.look_again_s)

    def _missing(self, topic: str, partition: int = 0) -> str:
        """What is said of a topic or partition that does not exist; "" where it does."""
        count = self.topics.get(self.topic(topic))
        if count is None:
            near = nearest(topic, map(self.called, self.topics))
            hint = f"did you mean {near!r}?" if near else "create it, or have a client write to it"
            return f"there is no topic {topic!r}; {hint}"
        return "" if 0 <= partition < count else no_partition(topic, partition, count)

    # ------------------------------------------------------------ cleaning

    def compact(self, topic: str | None = None) -> None:
        """Compact a topic now, or every one whose `cleanup.policy` compacts. Raises as `EmbeddedLog.compact`."""
        self._clean(self.log.compact, topic)

    def apply_retention(self, topic: str | None = None) -> None:
        """Delete what is too old or too much now, of a topic or of every one whose `cleanup.policy` deletes. Raises as
        `EmbeddedLog.apply_retention`."""
        self._clean(self.log.apply_retention, topic)

    def _clean(self, work: Callable[[str], object], topic: str | None) -> None:
        if topic is not None:
            try:
                work(self.topic(topic))
            except UnknownTopicOrPartition as error:
                raise UnknownTopicOrPartition(self._missing(topic) or str(error)) from None
            return
        for name in self.topics:
            try:
                work(name)
            except PolicyViolation:  # its policy says otherwise
                continue

    def start_offset(self, topic: str, partition: int = 0) -> int:
        """The first offset that can be read. Raises `UnknownTopicOrPartition`."""
        return self.log.start_offset(self.topic(topic), partition)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """One past the last offset that can be read. Raises `UnknownTopicOrPartition`."""
        return self.log.end_offset(self.topic(topic), partition)

    # ------------------------------------------------------------ waiting

    def wait_for_offset(self, topic: str, partition: int = 0, *, offset: int, within: float = WITHIN_S) -> None:
        """Wait until the partition's end is at `offset` or behind it. Raises `AssertionError`."""
        wait_for(
            lambda: self._end_or_none(topic, partition) >= offset,
            within,
            lambda: (
                self._missing(topic, partition)
                or f"{topic}-{partition} ends at {self._end_or_none(topic, partition)}, not at {offset}"
            ),
            self.look_again_s,
        )

    def _end_or_none(self, topic: str, partition: int) -> int:
        try:
            return self.end_offset(topic, partition)
        except UnknownTopicOrPartition:
            return -1

    def wait_for_group(
        self, group: str, *, members: int | None = None, state: str | None = None, within: float = WITHIN_S
    ) -> GroupDescription:
        """Wait until a group has so many members, and is in a state ("Stable", "Empty" …). Raises `AssertionError`, and
        `ConfigError` for a state that no group is ever in."""
        if state is not None:
            _check_state(state)
        name = self.group(group)
        last: list[GroupDescription] = []

        def look() -> GroupDescription | None:
            found = self.log.describe_group(name)
            if found is None:
                return None
            last[:] = [found]
            well = members is None or len(found.members) == members
            return found if well and (state is None or found.state == state) else None

        def problem() -> str:
            wanted = [*([] if members is None else [f"{members} members"]), *([] if state is None else [state])]
            there = f"is {last[0].state} with {len(last[0].members)} members" if last else "does not exist"
            return f"group {group} {there}, not {', '.join(wanted) or 'there'}"

        return wait_for(look, within, problem, self.look_again_s)

    def wait_for_commit(
        self, group: str, topic: str, partition: int = 0, *, offset: int, within: float = WITHIN_S
    ) -> None:
        """Wait until a group has committed `offset` or a later one. Raises `AssertionError`."""
        last = -1

        def look() -> bool:
            nonlocal last
            last = self.log.committed(self.group(group), self.topic(topic), partition)
            return last >= offset

        def problem() -> str:
            committed = f"{last}" if last >= 0 else "nothing"
            return (
                self._missing(topic, partition)
                or f"group {group} has committed {committed} of {topic}-{partition}, not {offset}"
                + self._committed_elsewhere(group, topic, partition)
            )

        wait_for(look, within, problem, self.look_again_s)

    def _committed_elsewhere(self, group: str, topic: str, partition: int) -> str:
        """What a group has committed of a topic's other partitions: a record may have gone to one of these."""
        others = [number for number in self._numbers(topic, None) if number != partition]
        offsets = {number: self.log.committed(self.group(group), self.topic(topic), number) for number in others}
        found = [f"{offset} of {topic}-{number}" for number, offset in offsets.items() if offset > 0]
        return f"; but {', '.join(found[:MOST_TOLD])}" if found else ""


def _check_headers(headers: object) -> None:
    if not (headers is None or isinstance(headers, Mapping)):
        raise TypeError(f'headers={headers!r} are no mapping; pass names and values, e.g. {{"trace": "1"}}')


def _check_state(state: str) -> None:
    if state not in GROUP_STATES:
        near = nearest(state.lower(), (each.lower() for each in GROUP_STATES))
        meant = next((each for each in GROUP_STATES if each.lower() == near), None)
        hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(GROUP_STATES)}"
        raise ConfigError(f"there is no state {state!r} of groups; {hint}")


def specs(topics: Topics) -> Iterable[tuple[str, dict[str, Any]]]:
    """(name, arguments of `create_topic`) of each. Raises `ConfigError`."""
    if isinstance(topics, str):
        topics = [topics]
    if not isinstance(topics, Iterable):
        raise ConfigError(f"topics={topics!r}: {TOPICS_ARE}")
    found: list[tuple[str, dict[str, Any]]] = []
    for name in topics:
        if not isinstance(name, str):
            raise ConfigError(f"{name!r} is no name of a topic; {TOPICS_ARE}")
        wanted = topics[name] if isinstance(topics, Mapping) else {}
        if not isinstance(wanted, Mapping):
            wanted = {PARTITIONS: wanted}
        config = {key.replace("_", "."): value for key, value in wanted.items()}
        partitions = config.pop(PARTITIONS, -1)
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise ConfigError(f"topic {name}: {partitions!r} is no number of partitions; {TOPICS_ARE}")
        found.append((name, {"partitions": partitions, "config": config}))
    return found
