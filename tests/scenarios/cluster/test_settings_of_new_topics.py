"""A broker gets orders about a topic before the news of its settings: it reads them, and only that topic waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from hand_clock import HandClock

import logkernel
from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.broker.governance.leader_orders import ANSWER_MS
from logkernel.broker.governance.settings_reads import PATIENCE_MS, READ_AGAIN_MS
from logkernel.broker.workers import SteppedWorkers
from logkernel.cluster.network import REPLICATION, ProcessNetwork
from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import MetadataChange, RequestContext
from logkernel.controller.image import acl_key, quota_key
from logkernel.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    KafkaStorageError,
    MessageTooLarge,
    StaleControllerEpoch,
    UnknownTopicId,
)
from logkernel.kernel import Kernel
from logkernel.requests.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from logkernel.requests.replication import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from logkernel.vocabulary import Acl, AclOperation, ResourceType, TopicPartition

EARLIER, LATER = UUID(int=1), UUID(int=2)
NAME = TopicPartition("t", 0)
DELETED = -2
TOPIC = 2
STRICT = {"min.insync.replicas": "2", "cleanup.policy": "compact"}


def no_log() -> Any:
    raise AssertionError("memory keeps no log")


class Store(SharedStore):
    """Nobody hears of settings, and reads of them are answered when the test says so."""

    def __init__(self) -> None:
        super().__init__(Kernel().coordination("memory", no_log))
        self.held: list[Callable[[], None]] = []
        """Reads that are under way."""
        self.reads: list[list[str]] = []
        self.is_quick = True
        """Reads are answered at once."""

    def session(self) -> Session:
        made = Session(self)
        self.sessions.append(made)
        return made

    def tell_changes(self, changes: Sequence[MetadataChange]) -> None:
        heard = [change for change in changes if change.kind != "config"]
        if heard:
            super().tell_changes(heard)

    def answer_reads(self) -> None:
        held, self.held = self.held, []
        for answer in held:
            answer()


class Session(StoreSession):
    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.store = store

    def read_topic_settings(self, topics: Collection[str], answered: Any) -> None:
        self._check()
        self.store.reads.append(sorted(topics))
        if self.store.is_quick:
            super().read_topic_settings(topics, answered)
        else:
            self.store.held.append(lambda: StoreSession.read_topic_settings(self, topics, answered))


class Commanded:
    """A broker, the orders that it gets, and its clock."""

    def __init__(self) -> None:
        self.clock = HandClock(1_000)
        self.store = Store()
        access = ClusterAccess(self._session, ProcessNetwork(lambda call: None).transport(1))
        settings = ("log.dirs=/data", "node.id=1", "log.cleaner.enable=false")
        self.broker: Broker = build(
            None, settings, in_memory=True, access=access, clock=self.clock, workers=SteppedWorkers()
        )
        self.answers: list[Any] = []
        self.set("there", {"retention.ms": "7"})
        row = [[1], [1], 1, 0, 0]
        self.store.commit(
            [MetadataChange("topic", "there", {"id": str(UUID(int=9)), "internal": False, "partitions": [row]})]
        )
        self.broker.start()
        self.broker.governance.join()
        self.broker.step()

    def _session(self) -> Session:
        self.session = self.store.session()
        return self.session

    def set(self, topic: str, settings: dict[str, str] | None) -> None:
        """A controller stores settings; the broker hears nothing of it."""
        self.store.commit([MetadataChange("config", f"topic:{topic}", settings)])

    def pass_ms(self, ms: int) -> None:
        self.clock.now_ms += ms
        self.broker.step()
        self.broker.step()

    # ------------------------------------------------------------ orders

    def order(self, request: type[Any], *topics: Any) -> None:
        """The answer comes to `answers`."""
        made = request(
            controller_id=1,
            controller_epoch=self.store.term,
            broker_epoch=self.store.brokers[1][1],
            topic_states=list(topics),
        )
        context = RequestContext(listener=REPLICATION, internal=True, commands=True)
        self.broker.submit(made, context, self.answers.append)

    def lead(self, *topics: tuple[str, UUID], epoch: int = 0, leader: int = 1) -> None:
        state = LeaderAndIsrPartitionState(0, 1, leader, epoch, [leader], epoch, [1], is_new=epoch == 0)
        self.order(
            LeaderAndIsrRequest, *(LeaderAndIsrTopicState(topic, topic_id, [state]) for topic, topic_id in topics)
        )

    def tell(self, topic_id: UUID, leader: int = 1, epoch: int = 0, replicas: tuple[int, ...] = (1,)) -> None:
        state = UpdateMetadataPartitionState(0, 1, leader, epoch, list(replicas), 0, list(replicas))
        self.order(UpdateMetadataRequest, UpdateMetadataTopicState("t", topic_id, [state]))
        assert self.answers.pop().error_code == 0

    def stop(self, epoch: int, *, delete: bool = True) -> int:
        self.order(StopReplicaRequest, StopReplicaTopicState("t", [StopReplicaPartitionState(0, epoch, delete)]))
        return int(self.answers.pop().partition_errors[0].error_code)

    def codes(self) -> list[int]:
        """Of the one LeaderAndIsr that was answered."""
        (answer,) = self.answers
        self.answers.clear()
        return [row.error_code for topic in answer.topics for row in topic.partition_errors]

    # ------------------------------------------------------------ what it does

    @property
    def led(self) -> dict[str, int]:
        """Led topic → its minimum of in-sync replicas."""
        return {name[0]: replica.leader.min_isr for name, replica in self.broker.replicas.led.items()}

    def ask(self, request: Any) -> list[Any]:
        answers: list[Any] = []
        self.broker.submit(request, RequestContext(), answers.append)
        return answers

    def describe(self, topic: str = "t") -> list[Any]:
        return self.ask(DescribeConfigsRequest([DescribeConfigsResource(TOPIC, topic, ["min.insync.replicas"])]))


@pytest.fixture
def one() -> Iterator[Commanded]:
    made = Commanded()
    yield made
    made.broker.abandon()


# ---------------------------------------------------------------- led by what is stored


def test_a_new_topic_is_led_by_its_settings_though_no_news_of_them_came(one: Commanded) -> None:
    one.set("t", STRICT)
    one.lead(("t", EARLIER))
    assert (one.codes(), one.led) == ([0], {"t": 2})
    assert one.broker.replicas.led[NAME].settings.cleanup_policy == ("compact",)


def test_a_new_topic_is_followed_by_its_settings(one: Commanded) -> None:
    one.set("t", STRICT)
    one.lead(("t", EARLIER), leader=2)
    assert one.codes() == [0]
    assert one.broker.replicas.followed[NAME].settings.cleanup_policy == ("compact",)


def test_a_topic_that_was_made_again_has_not_the_settings_of_the_earlier_one(one: Commanded) -> None:
    """ZooKeeper's watch on the names in /config/topics does not tell of it."""
    one.set("t", STRICT)
    one.lead(("t", EARLIER))
    assert one.codes() == [0]
    one.tell(EARLIER)
    one.tell(EARLIER, DELETED)
    assert one.stop(DELETED) == 0
    one.set("t", None)
    one.lead(("t", LATER))
    assert (one.codes(), one.led) == ([0], {"t": 1})


def test_topics_of_the_start_and_topics_that_were_read_are_not_read_again(one: Commanded) -> None:
    one.lead(("there", UUID(int=9)), ("t", EARLIER), ("u", LATER))
    one.lead(("there", UUID(int=9)), ("t", EARLIER), ("u", LATER), epoch=1)
    assert one.store.reads == [["t", "u"]]
    assert one.broker.replicas.led["there", 0].settings.retention_ms == 7


# ---------------------------------------------------------------- a slow coordination


def test_a_slow_read_holds_only_the_topic_that_needs_it(one: Commanded) -> None:
    one.store.is_quick = False
    one.set("t", STRICT)
    one.lead(("t", EARLIER), ("there", UUID(int=9)))
    assert (one.answers, one.led) == ([], {"there": 1})
    one.lead(("there", UUID(int=9)), epoch=1)
    assert one.codes() == [0]
    one.store.answer_reads()
    one.broker.step()
    assert (one.codes(), one.led) == ([0, 0], {"there": 1, "t": 2})


def test_a_controller_does_not_wait_longer_for_the_answer_than_it_has_to(one: Commanded) -> None:
    one.store.is_quick = False
    one.set("t", STRICT)
    one.lead(("t", EARLIER))
    one.pass_ms(ANSWER_MS - 1)
    assert one.answers == []
    one.pass_ms(1)
    assert (one.codes(), one.led) == ([0], {})
    one.store.answer_reads()
    one.broker.step()
    assert (one.answers, one.led) == ([], {"t": 2})


def test_a_read_is_tried_again_until_it_has_an_answer(one: Commanded, caplog: pytest.LogCaptureFixture) -> None:
    one.set("t", STRICT)
    one.session.make_unsure()
    one.lead(("t", EARLIER))
    for _ in range(3):
        one.pass_ms(READ_AGAIN_MS)
    assert one.led == {}
    one.session.make_sure()
    one.pass_ms(READ_AGAIN_MS)
    assert one.led == {"t": 2}
    assert len([each for each in caplog.messages if "settings of topics not read" in each]) == 1


def test_a_new_session_reads_what_the_lost_one_did_not(one: Commanded) -> None:
    one.store.is_quick = False
    one.set("t", STRICT)
    one.lead(("t", EARLIER))
    lost = one.session
    one.store.is_quick = True
    lost.expire()
    one.pass_ms(1)
    assert one.session is not lost
    assert one.led == {"t": 2}


def test_a_new_session_finds_what_was_set_while_there_was_none(one: Commanded) -> None:
    """Rules, quotas and settings that changed meanwhile were unknown until the broker's next start."""
    shop, bank = (quota_key((("user", user),)) for user in ("shop", "bank"))
    rule = acl_key(Acl(ResourceType.TOPIC, 3, "orders", "User:shop", "*", AclOperation.READ, 2))
    one.store.tell_changes = lambda changes: SharedStore.tell_changes(one.store, changes)  # type: ignore[method-assign]
    one.store.commit([MetadataChange("quota", shop, {"producer_byte_rate": 5.0})])
    one.lead(("there", UUID(int=9)))
    one.broker.step()
    one.session.expire()
    one.store.commit(
        [
            MetadataChange("quota", shop, None),
            MetadataChange("quota", bank, {"producer_byte_rate": 7.0}),
            MetadataChange("acl", rule, {}),
            MetadataChange("config", "broker:", {"log.retention.bytes": "77"}),
            MetadataChange("config", "topic:there", {"retention.ms": "8"}),
        ]
    )
    one.pass_ms(1)
    image = one.broker.metadata.image
    assert image.quotas == {(("user", "bank"),): {"producer_byte_rate": 7.0}}
    assert len(image.acls) == 1
    settings = one.broker.replicas.led["there", 0].settings
    assert (settings.retention_ms, settings.retention_bytes) == (8, 77)


# ---------------------------------------------------------------- what comes meanwhile


def test_orders_that_are_held_are_carried_out_in_their_order(one: Commanded) -> None:
    one.store.is_quick = False
    one.lead(("t", EARLIER))
    one.lead(("t", EARLIER), epoch=2, leader=2)
    one.store.answer_reads()
    one.broker.step()
    assert [each.topics[0].partition_errors[0].error_code for each in one.answers] == [0, 0]
    assert one.broker.replicas.followed[NAME].leader_epoch == 2
    assert one.store.reads == [["t"]]


def test_a_held_order_is_not_obeyed_after_the_topic_was_deleted(one: Commanded) -> None:
    one.store.is_quick = False
    one.lead(("t", EARLIER))
    one.tell(EARLIER, DELETED)
    assert one.stop(DELETED) == 0
    one.store.answer_reads()
    one.broker.step()
    assert (one.codes(), one.led) == ([UnknownTopicId.code], {})
    assert NAME not in one.broker.logs.directories.logs


def test_a_deletion_that_was_meant_for_an_earlier_topic_does_not_stop_a_held_order(one: Commanded) -> None:
    one.store.is_quick = False
    one.lead(("t", LATER))
    assert one.stop(DELETED) == FencedLeaderEpoch.code
    one.store.answer_reads()
    one.broker.step()
    assert (one.codes(), one.led) == ([0], {"t": 1})


@pytest.mark.parametrize(("epoch", "code"), [(3, 0), (2, 0), (1, FencedLeaderEpoch.code), (-1, 0)])
def test_a_replica_that_is_to_stop_is_not_begun_by_a_held_order(epoch: int, code: int, one: Commanded) -> None:
    one.store.is_quick = False
    one.lead(("t", EARLIER), epoch=2)
    assert one.stop(epoch) == code
    one.store.answer_reads()
    one.broker.step()
    assert (one.codes(), one.led) == (([StaleControllerEpoch.code], {}) if code == 0 else ([0], {"t": 1}))


@pytest.mark.parametrize(("epoch", "obeyed"), [(3, False), (2, True)])
def test_a_held_order_is_not_obeyed_where_the_partition_has_moved_away(
    epoch: int, obeyed: bool, one: Commanded
) -> None:
    one.store.is_quick = False
    one.lead(("t", EARLIER), epoch=2)
    one.tell(EARLIER, 2, epoch, replicas=(2,))
    one.store.answer_reads()
    one.broker.step()
    assert (one.codes(), one.led) == (([0], {"t": 1}) if obeyed else ([StaleControllerEpoch.code], {}))


def test_a_controller_learns_late_that_an_order_could_not_be_obeyed(one: Commanded) -> None:
    """It was answered 0, and takes notice of INCONSISTENT_TOPIC_ID by a second answer."""
    one.lead(("t", EARLIER))
    assert one.codes() == [0]
    one.store.is_quick = False
    one.lead(("t", LATER))
    one.pass_ms(ANSWER_MS)
    assert one.codes() == [0]
    told: list[str] = []
    one.store.tell_changes = lambda changes: told.extend(each.kind for each in changes)  # type: ignore[method-assign]
    one.store.answer_reads()
    one.pass_ms(1)
    assert told == ["log_dirs"]
    one.lead(("t", LATER))
    assert one.codes() == [InconsistentTopicId.code]


# ---------------------------------------------------------------- requests about settings


def test_settings_of_a_topic_that_is_new_here_are_described_as_they_are(one: Commanded) -> None:
    one.store.is_quick = False
    one.set("t", STRICT)
    one.tell(EARLIER)
    answers = one.describe()
    assert answers == []
    one.store.answer_reads()
    one.broker.step()
    assert answers[0].results[0].configs[0].value == "2"
    assert one.describe()[0].results[0].configs[0].value == "2"


def test_a_request_about_settings_does_not_wait_for_ever(one: Commanded) -> None:
    one.store.is_quick = False
    one.tell(EARLIER)
    answers = one.describe()
    one.pass_ms(PATIENCE_MS)
    assert [each.error_code for each in answers[0].results] == [KafkaStorageError.code]
    one.store.answer_reads()
    one.broker.step()
    assert len(answers) == 1


def test_one_setting_of_a_topic_that_is_new_here_is_changed_and_the_others_stay(one: Commanded) -> None:
    one.set("t", STRICT)
    one.tell(EARLIER)
    retention = IncrementalAlterConfigsAlterableConfig("retention.ms", 0, "5")
    wanted = IncrementalAlterConfigsAlterConfigsResource(TOPIC, "t", [retention])
    answers = one.ask(IncrementalAlterConfigsRequest([wanted]))
    assert [each.error_code for each in answers[0].responses] == [0]
    stored = {each.key: each.value for each in one.store.keeper.changes() if each.kind == "config"}
    assert stored["topic:t"] == {**STRICT, "retention.ms": "5"}


# ---------------------------------------------------------------- a cluster


def test_a_producer_to_a_topic_that_was_just_made_is_held_to_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The news of settings never comes."""
    tell = SharedStore.tell_changes

    def deaf(self: SharedStore, changes: Sequence[MetadataChange]) -> None:
        tell(self, [change for change in changes if change.kind != "config"])

    monkeypatch.setattr(SharedStore, "tell_changes", deaf)
    with logkernel.open_cluster(brokers=2) as cluster:
        for number in range(5):
            cluster.create_topic(f"orders-{number}", 1, replication_factor=2, max_message_bytes=100)
            with cluster.producer() as producer, pytest.raises(MessageTooLarge):
                producer.send(f"orders-{number}", bytes(1_000)).result(120)
