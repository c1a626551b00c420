"""Client quotas decided by a plugin: at work in a broker, from an outside distribution, and where it fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.hand_clock import HandClock
from tests.outside_distribution import outside_distribution

import logkernel
from logkernel.broker.build import build
from logkernel.broker.quotas import cluster_news
from logkernel.broker.quotas.cluster_news import REST_MS
from logkernel.contracts import ClientLimit, ClusterFacts, LedPartition, QuotaEntity, RequestContext
from logkernel.embed import EmbeddedLog
from logkernel.errors import PluginError
from logkernel.hookspecs import hookimpl
from logkernel.record.encode import encode_batch
from logkernel.requests import access as a
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest
from logkernel.vocabulary import Principal, Record

BATCH = encode_batch([Record(value=bytes(1_000), timestamp_ms=5)])
SIZE = len(BATCH)
SETTING = "client.quota.callback.class=tiers"


class Tiers:
    """Users of a tier share its limit; `limit` fails as `fails` says."""

    fails = ""

    def __init__(self) -> None:
        self.limits: dict[tuple[str, str], float] = {}
        self.told: list[dict[QuotaEntity, dict[str, float]]] = []
        self.types = {"producer_byte_rate", "controller_mutation_rate"}

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self.told.append({entity: dict(values) for entity, values in quotas.items()})

    def limited_types(self) -> Any:
        return self.types

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        if self.fails == "raises":
            raise ZeroDivisionError("a bug")
        tier = principal.name.partition("-")[0]
        quota = self.limits.get((quota_type, tier))
        found = None if quota is None else ClientLimit(quota, (tier,))
        return {"words": "much", "zero": ClientLimit(0, (tier,))}.get(self.fails, found)


class Plugin:
    def __init__(self, made: Tiers) -> None:
        self.made = made

    @hookimpl
    def logkernel_client_quota_callback(self, name: str) -> object:
        return self.made if name == "tiers" else None

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("client quota callback", "tiers")]


@pytest.fixture
def tiers() -> Tiers:
    return Tiers()


@pytest.fixture
def clock() -> HandClock:
    return HandClock(1_000)


@pytest.fixture
def log(clock: HandClock, tiers: Tiers) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(build(None, [SETTING], in_memory=True, clock=clock, plugins=[Plugin(tiers)])) as found:
        found.create_topic("t")
        yield found


def ask(log: EmbeddedLog, user: str, request: Any, **context: Any) -> int:
    found: list[Any] = []
    client = RequestContext(client_id="c", mute=lambda _: None, principal=Principal("User", user), **context)
    log.broker.submit(request, client, found.append)
    log.broker.step()
    return int(found[0].throttle_time_ms)


def produce(log: EmbeddedLog, user: str, times: int = 1) -> int:
    rows = [TopicProduceData("t", [PartitionProduceData(0, bytearray(BATCH * times))])]
    return ask(log, user, ProduceRequest(None, -1, 1_000, rows))


def pass_ms(log: EmbeddedLog, clock: HandClock, ms: int) -> None:
    clock.now_ms += ms
    log.broker.step()


def test_clients_share_what_it_says_and_it_may_change_at_any_time(
    log: EmbeddedLog, tiers: Tiers, clock: HandClock
) -> None:
    assert produce(log, "free-ann", 50) == 0
    tiers.limits["producer_byte_rate", "free"] = SIZE
    assert [produce(log, "free-ann", 5), produce(log, "free-bob", 5), produce(log, "free-eve")] == [0, 0, 1_000]
    assert produce(log, "paid-cy", 50) == 0
    tiers.limits["producer_byte_rate", "free"] = 100 * SIZE
    assert produce(log, "free-ann") == 0


def test_it_is_told_all_quotas_of_clients_at_the_start_and_at_each_change(log: EmbeddedLog, tiers: Tiers) -> None:
    assert tiers.told[0] == {}
    for parts, quota in ([("user", "ann")], "producer_byte_rate"), ([("ip", "10.0.0.1")], "connection_creation_rate"):
        entity = [a.AlterClientQuotasRequestEntryDataEntityData(kind, name) for kind, name in parts]
        row = a.AlterClientQuotasRequestEntryData(entity, [a.OpData(quota, 5.0, remove=False)])
        assert log.request(a.AlterClientQuotasRequest([row])).entries[0].error_code == 0
    assert tiers.told[-1] == {(("user", "ann"),): {"producer_byte_rate": 5.0}}
    assert produce(log, "ann", 50) == 0, "the callback decides alone"


def test_it_limits_mutations(log: EmbeddedLog, tiers: Tiers) -> None:
    tiers.limits["controller_mutation_rate", "free"] = 1
    asked = CreateTopicsRequest([CreatableTopic(f"t{number}", 8, 1) for number in range(2)])
    assert ask(log, "paid-cy", asked) == 0
    asked = CreateTopicsRequest([CreatableTopic(f"u{number}", 8, 1) for number in range(2)])
    assert ask(log, "free-ann", asked) > 0


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("raises", "ZeroDivisionError: a bug"),
        ("words", "answered 'much'; return ClientLimit"),
        ("zero", "the quota is a number over 0"),
    ],
)
def test_whom_it_fails_for_is_served_and_not_limited(log: EmbeddedLog, tiers: Tiers, fails: str, said: str) -> None:
    tiers.limits["producer_byte_rate", "free"] = SIZE
    tiers.fails = fails
    assert produce(log, "free-ann", 50) == 0
    (fault,) = log.broker.runtime.kernel.faults
    assert said in fault.error
    tiers.fails = ""
    assert produce(log, "free-ann", 20) > 0


def test_where_it_limits_nothing_requests_go_straight_to_the_router(tiers: Tiers, clock: HandClock) -> None:
    tiers.types = {"controller_mutation_rate"}
    with EmbeddedLog(build(None, [SETTING], in_memory=True, clock=clock, plugins=[Plugin(tiers)])) as log:
        assert log.broker.quotas.way(log.broker.router.dispatch) == log.broker.router.dispatch
    with EmbeddedLog(build(None, (), in_memory=True, clock=clock)) as log:
        assert log.broker.quotas.way(log.broker.router.dispatch) == log.broker.router.dispatch


def test_one_that_is_not_installed_ends_the_start() -> None:
    with pytest.raises(PluginError, match=r"no plugin provides the client quota callback 'com\.acme\.Tiers'"):
        build(None, ["client.quota.callback.class=com.acme.Tiers"], in_memory=True)


# ---------------------------------------------------------------- limits that follow the leaders


class Followed(Tiers):
    """Users may write so many bytes a second for each partition that their broker leads."""

    def __init__(self) -> None:
        super().__init__()
        self.types = set()
        self.heard: list[ClusterFacts] = []
        self.leads = 0
        self.each = float(SIZE)
        self.answers: Any = None
        """What it says in place of the truth."""
        self.takes: Callable[[], object] = lambda: None

    def update_cluster_metadata(self, cluster: ClusterFacts) -> Any:
        self.takes()
        self.heard.append(cluster)
        before = self.leads
        self.leads = sum(row.leader == cluster.node_id for rows in cluster.topics.values() for row in rows)
        self.types = {"producer_byte_rate"} if self.leads else set()
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.leads != before if self.answers is None else self.answers

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> Any:
        return ClientLimit(self.leads * self.each, (principal.name,)) if self.leads else None


@pytest.fixture
def followed() -> Followed:
    return Followed()


@pytest.fixture
def one(clock: HandClock, followed: Followed) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(build(None, [SETTING], in_memory=True, clock=clock, plugins=[Plugin(followed)])) as found:
        yield found


def begin(log: EmbeddedLog, followed: Followed, clock: HandClock) -> None:
    """Until all of the start was told, and the next change is told at once."""
    for _ in range(2):
        pass_ms(log, clock, REST_MS)
    followed.heard.clear()


def test_limits_follow_the_partitions_that_a_broker_leads(
    one: EmbeddedLog, followed: Followed, clock: HandClock
) -> None:
    assert one.broker.quotas.asked_way(one.broker.router.dispatch) == one.broker.router.dispatch
    one.create_topic("t", 2)
    pass_ms(one, clock, REST_MS)
    assert produce(one, "ann", 20) == 0
    assert produce(one, "ann", 1) > 0
    pass_ms(one, clock, 60_000)
    one.create_topic("u", 40)
    pass_ms(one, clock, REST_MS)
    assert [produce(one, "ann", 20), produce(one, "ann", 1)] == [0, 0]
    one.delete_topic("u")
    one.delete_topic("t")
    pass_ms(one, clock, REST_MS)
    assert followed.heard[-1].topics == {}
    assert one.broker.quotas.asked_way(one.broker.router.dispatch) == one.broker.router.dispatch


def test_it_is_told_what_the_broker_knows(one: EmbeddedLog, followed: Followed, clock: HandClock) -> None:
    assert [(each.topics, each.node_id) for each in followed.heard] == [({}, one.broker.runtime.node_id)]
    one.create_topic("t", 2)
    pass_ms(one, clock, REST_MS)
    told = followed.heard[-1]
    node = told.node_id
    assert (told.cluster_id, told.nodes, told.internal) == (one.broker.cluster.id, {node}, frozenset())
    assert told.topics == {"t": (LedPartition(node, (node,), (node,)),) * 2}
    with pytest.raises(TypeError):
        told.topics["u"] = ()  # type: ignore[index]


def test_changes_that_come_soon_after_one_another_are_told_at_once(
    one: EmbeddedLog, followed: Followed, clock: HandClock
) -> None:
    begin(one, followed, clock)
    for number in range(5):
        one.create_topic(f"t{number}")
    assert [len(each.topics) for each in followed.heard] == [1]
    pass_ms(one, clock, REST_MS - 1)
    assert len(followed.heard) == 1
    pass_ms(one, clock, 1)
    assert [len(each.topics) for each in followed.heard] == [1, 5]
    pass_ms(one, clock, 60_000)
    assert len(followed.heard) == 2, "nothing changed"


def test_a_slow_one_gets_its_share_of_the_thread_and_no_more(
    one: EmbeddedLog, followed: Followed, clock: HandClock
) -> None:
    begin(one, followed, clock)

    def take() -> None:
        clock.now_ms += 500

    followed.takes = take
    one.create_topic("t0")
    for _ in range(9):
        pass_ms(one, clock, 1_000)
        one.create_topic(f"t{clock.now_ms}")
    assert len(followed.heard) == 1
    pass_ms(one, clock, 1_000)
    assert [len(each.topics) for each in followed.heard] == [1, 10]


@pytest.mark.parametrize(
    ("answers", "said"),
    [(ZeroDivisionError("a bug"), "ZeroDivisionError: a bug"), (1, "answered 1; return True where limits may")],
)
def test_one_that_fails_is_named_and_told_again(
    answers: object, said: str, one: EmbeddedLog, followed: Followed, clock: HandClock
) -> None:
    begin(one, followed, clock)
    followed.answers = answers
    one.create_topic("t")
    (fault,) = one.broker.runtime.kernel.faults
    assert said in fault.error
    assert produce(one, "ann", 50) == 0, "its types were not asked again"
    followed.answers, followed.leads = None, 0
    pass_ms(one, clock, REST_MS)
    one.create_topic("u")
    assert produce(one, "ann", 50) > 0


def test_whoever_does_not_ask_who_leads_costs_nothing(
    tiers: Tiers, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("facts are made")

    monkeypatch.setattr(cluster_news, "facts_of", never)
    with EmbeddedLog(build(None, [SETTING], in_memory=True, clock=clock, plugins=[Plugin(tiers)])) as log:
        log.create_topic("t")
        pass_ms(log, clock, REST_MS)


def test_brokers_of_a_cluster_are_told_who_leads(eventually: Callable[..., None]) -> None:
    made: dict[int, Followed] = {}

    class Several:
        @hookimpl
        def logkernel_client_quota_callback(self, name: str, settings: Any) -> object:
            return made.setdefault(settings.get("node.id"), Followed()) if name == "tiers" else None

        @hookimpl
        def logkernel_names(self) -> list[tuple[str, str]]:
            return [("client quota callback", "tiers")]

    with logkernel.open_cluster(brokers=3, plugins=[Several()], client_quota_callback_class="tiers") as cluster:
        cluster.create_topic("orders", 6, replication_factor=2)

        def divided() -> bool:
            return sorted(each.leads for each in list(made.values())) == [2, 2, 2]

        eventually(divided)
        cluster.kill(1)
        eventually(lambda: made[2].leads + made[3].leads == 6)


OUTSIDE = """
from logkernel import hookimpl
from logkernel.contracts import ClientLimit


class Bulk:
    def quotas_changed(self, quotas):
        pass

    def limited_types(self):
        return ["producer_byte_rate"]

    def limit(self, quota_type, principal, client_id):
        limited = quota_type in self.limited_types() and client_id.startswith("bulk")
        return ClientLimit(10_000, ("bulk",)) if limited else None


@hookimpl
def logkernel_client_quota_callback(name):
    return Bulk() if name == "bulk" else None


@hookimpl
def logkernel_names():
    return [("client quota callback", "bulk")]
"""


@pytest.mark.long
def test_one_of_an_outside_distribution_holds_librdkafka_back(
    start_broker: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("PYTHONPATH", outside_distribution(tmp_path / "site", "acme-bulk", OUTSIDE))
    broker = start_broker("--set", "client.quota.callback.class=bulk")
    told: dict[str, list[float]] = {}
    for client_id, size in ("bulk-1", 90_000), ("bulk-2", 90_000), ("shop", 200_000):
        throttled = told[client_id] = []
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "client.id": client_id,
            "throttle_cb": lambda event, throttled=throttled: throttled.append(event.throttle_time),
        }
        producer = confluent.Producer(settings)
        producer.produce("t", bytes(size))
        assert producer.flush(20) == 0
        producer.poll(0)
    assert {client_id: any(times) for client_id, times in told.items()} == {
        "bulk-1": False, "bulk-2": True, "shop": False,
    }  # fmt: skip
    command = [sys.executable, "-m", "logkernel", "plugin", "check", "client quota callback", "bulk"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, " 0 broken" in done.stdout) == (0, True), done.stdout
