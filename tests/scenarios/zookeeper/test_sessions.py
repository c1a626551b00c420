"""Sessions over a real ZooKeeper: what they watch, what others write, what is lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zookeepers
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, UnimplementedError
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from logkernel.contracts import MetadataChange
from logkernel.errors import ClusterAuthorizationFailed, DuplicateBrokerRegistration, KafkaStorageError
from logkernel.plugins.transport.zookeeper import watched
from logkernel.plugins.transport.zookeeper.client import Client
from logkernel.plugins.transport.zookeeper.options import Address, Options
from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession
from logkernel.vocabulary import Secret

ID = "7d7d6d32-6a7d-4fb8-a4ec-3fe6f1f2a1b1"
FACT = {"listeners": {"PLAINTEXT": ["h", 1]}, "rack": None}
SCRAM = {"iterations": 4096, "salt": "c2E=", "stored_key": "c3Q=", "server_key": "c2s="}
TOKEN = {
    "owner": "User:a b", "requester": "User:r", "renewers": ["User:%"], "issued_ms": 1, "max_ms": 3, "expires_ms": 2
}  # fmt: skip
WAIT_S = 180.0
PATIENT_MS = 18_000
"""A session timeout with which a call may take 3 s, as it may on a slow machine."""


class Heard:
    """Notes what a session tells."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self.session = session
        self.facts: dict[tuple[str, str], Any] = {}
        self.states: list[str] = []
        self.controllers: list[tuple[int | None, int]] = []
        session.subscribe(self, lambda: None)

    def on_changes(self, changes: Any) -> None:
        self.facts.update({(change.kind, change.key): change.value for change in changes})

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.controllers.append((node_id, term))

    def on_session(self, state: str) -> None:
        self.states.append(state)

    def until(self, holds: Any, what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        self.session.poll()
        while not holds():
            assert time.monotonic() < deadline, f"{what}: not so; {self.facts} {self.states} {self.controllers}"
            time.sleep(0.002)
            self.session.poll()

    def until_state(self, *states: str) -> None:
        self.until(lambda: self.states == list(states), f"states {states}")


class World:
    """A chroot of one ZooKeeper, sessions in it, and a client of another program."""

    def __init__(self, server: zookeepers.ZooKeeper, stack: ExitStack, chroot: str) -> None:
        self.server = server
        self.chroot = chroot
        self._stack = stack
        self.other = KazooClient(server.address)
        self.other.start()
        self.other.ensure_path(chroot)
        self.other.chroot = chroot
        stack.callback(self.other.stop)

    def session(self, timeout_ms: int = PATIENT_MS, address: str | None = None, **options: Any) -> ZooKeeperSession:
        made = ZooKeeperSession(
            Options(Address.parse((address or self.server.address) + self.chroot), timeout_ms, **options)
        )
        self._stack.callback(made.close)
        return made

    def proxied(self, timeout_ms: int) -> tuple[zookeepers.Proxy, ZooKeeperSession]:
        proxy = zookeepers.Proxy(self.server.port)
        self._stack.callback(proxy.close)
        return proxy, self.session(timeout_ms, proxy.address)

    def json(self, path: str) -> Any:
        return json.loads(self.other.get(path)[0])


@pytest.fixture
def world(patient_zookeeper: zookeepers.ZooKeeper, request: pytest.FixtureRequest) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(patient_zookeeper, stack, f"/{request.node.name}/kafka")


def topic(name: str = "t", count: int = 1) -> MetadataChange:
    rows = [[[1], [1], 1, 0, 0] for _ in range(count)]
    return MetadataChange("topic", name, {"id": ID, "internal": False, "partitions": rows})


def row(leader_epoch: int, epoch: int) -> MetadataChange:
    return MetadataChange("partition", "t:0", {"row": [[1], [1], 1, leader_epoch, epoch]})


def elected(session: ZooKeeperSession) -> int:
    term = session.campaign(1)
    assert term is not None
    list(session.changes())
    session.poll()
    return term


def rows_of(session: ZooKeeperSession, name: str = "t") -> list[Any]:
    return next(each.value["partitions"] for each in session.changes() if (each.kind, each.key) == ("topic", name))


# ---------------------------------------------------------------- watches


def test_only_the_controller_watches_brokers_and_topics(world: World) -> None:
    def settle(count: int) -> None:
        """Both hear what they were told, and have set so many watches then."""
        heard.until(lambda: two.poll() is None and world.server.watches() - before == count, f"{count} watches")

    before = world.server.watches()
    one, two = world.session(), world.session()
    heard = Heard(one)
    one.poll()
    each = world.server.watches() - before
    assert each == 8
    Heard(two)
    settle(2 * each)
    term = elected(one)
    one.announce(1, FACT)
    two.announce(2, FACT)
    heard.until(lambda: ("broker", "2") in heard.facts, "broker 2")
    settle(2 * each + 6 + 2)
    for number in range(5):
        one.commit_as_controller([topic(f"t{number}", 10)], term)
    settle(2 * each + 6 + 2)


def test_the_controller_hears_of_a_broker_that_was_started_again(world: World) -> None:
    one, two = world.session(), world.session()
    heard = Heard(one)
    elected(one)
    first = two.announce(2, FACT)
    heard.until(lambda: one.broker_epochs() == {2: first}, "broker 2")
    heard.facts.clear()
    again = two.announce(2, FACT)
    heard.until(lambda: one.broker_epochs() == {2: again}, "broker 2 again")
    assert heard.facts == {("broker", "2"): FACT}


# ---------------------------------------------------------------- what others write


def test_a_topic_of_somebody_else_has_the_controller_load_anew(world: World) -> None:
    session = world.session()
    heard = Heard(session)
    elected(session)
    value = {"version": 3, "partitions": {"0": [1]}, "topic_id": "cRvscJiyS-uuPL-eyYwZRQ"}
    world.other.create("/brokers/topics/theirs", json.dumps(value).encode())
    heard.until_state("unsure", "back")
    assert rows_of(session, "theirs") == [[[1], [1], -1, -1, -1]]
    first = MetadataChange("partition", "theirs:0", {"row": [[1], [1], 1, 0, 0]})
    session.commit_as_controller([first], 1)
    assert world.json("/brokers/topics/theirs/partitions/0/state")["leader"] == 1


def test_a_session_that_may_not_read_who_is_the_controller_stays_unsure_until_it_may(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "FIRST_WAIT_S", 0.05)
    session = world.session()
    heard = Heard(session)
    elected(session)
    world.other.add_auth("digest", "other:secret")
    world.other.set_acls("/controller", [make_digest_acl("other", "secret", all=True)])
    value = {"version": 3, "partitions": {"0": [1]}, "topic_id": "cRvscJiyS-uuPL-eyYwZRQ"}
    world.other.create("/brokers/topics/theirs", json.dumps(value).encode())
    heard.until_state("unsure")
    for _ in range(20):
        session.poll()
    assert heard.states == ["unsure"]
    world.other.set_acls("/controller", OPEN_ACL_UNSAFE)
    heard.until_state("unsure", "back")


def test_a_state_that_somebody_else_wrote_has_the_controller_load_anew(world: World) -> None:
    session = world.session()
    heard = Heard(session)
    term = elected(session)
    session.commit_as_controller([topic()], term)
    path = "/brokers/topics/t/partitions/0/state"
    world.other.set(path, world.other.get(path)[0])
    with pytest.raises(KafkaStorageError, match="read anew"):
        session.commit_as_controller([row(1, 1)], term)
    heard.until_state("unsure", "back")
    assert rows_of(session) == [[[1], [1], 1, 0, 1]]
    session.commit_as_controller([row(1, 2)], term)
    assert world.json(path)["leader_epoch"] == 1


def test_a_node_that_is_none_of_kafkas_is_left_out_and_left_alone(world: World) -> None:
    session = world.session()
    Heard(session)
    world.other.create("/brokers/topics/broken", b"{")
    world.other.create("/brokers/ids/7", b"[]")
    term = elected(session)
    session.commit_as_controller([topic()], term)
    assert {each.key for each in session.changes() if each.kind in ("topic", "broker")} == {"t"}
    assert world.other.get("/brokers/topics/broken")[0] == b"{"


def test_settings_that_a_kafka_gives_a_new_topic_are_heard(world: World) -> None:
    """A Kafka writes no entry in /config/changes for them."""
    session = world.session()
    heard = Heard(session)
    session.poll()
    world.other.create("/config/topics/theirs", b'{"version":1,"config":{"retention.ms":"5"}}')
    heard.until(lambda: heard.facts.get(("config", "topic:theirs")) == {"retention.ms": "5"}, "settings")
    world.other.delete("/config/topics/theirs")
    heard.until(lambda: heard.facts["config", "topic:theirs"] is None, "no settings")


def test_what_others_keep_of_a_user_stays(world: World) -> None:
    session = world.session()
    Heard(session)  # makes the nodes
    theirs = {"version": 1, "config": {"SCRAM-SHA-512": "salt=x", "consumer_byte_rate": "5", "unheard": "of"}}
    world.other.create("/config/users/alice", json.dumps(theirs).encode())
    session.commit([MetadataChange("scram", "1:alice", SCRAM)])
    kept = world.json("/config/users/alice")["config"]
    assert kept.pop("SCRAM-SHA-256") == "salt=c2E=,stored_key=c3Q=,server_key=c2s=,iterations=4096"
    assert kept == theirs["config"]


@pytest.mark.parametrize(
    "change",
    [
        MetadataChange("config", "topic:t", {"retention.ms": "1"}),
        MetadataChange("config", "broker:", {"background.threads": "2"}),
        MetadataChange("config", "group:g/1", {"consumer.session.timeout.ms": "1"}),
        MetadataChange("scram", "2:a b", SCRAM),
        MetadataChange("quota", '[["client-id",null],["user","a b"]]', {"producer_byte_rate": 5.0}),
        MetadataChange("quota", '[["ip","10.0.0.1"]]', {"connection_creation_rate": 5.0}),
        MetadataChange("acl", '[2,3,"orders","User:a","*",3,3]', {}),
        MetadataChange("acl", '[3,4,"g-","User:a","*",2,2]', {}),
        MetadataChange("token", "abc-_1", TOKEN),
    ],
    ids=lambda change: f"{change.kind}-{change.key[:3]}".replace("[", "").replace('"', ""),
)
def test_every_fact_of_a_broker_is_kept_told_and_taken_away(
    patient_zookeeper: zookeepers.ZooKeeper, change: MetadataChange
) -> None:
    with ExitStack() as stack:
        world = World(patient_zookeeper, stack, f"/facts-{abs(hash(change.key))}")
        one, two = world.session(), world.session()
        heard = Heard(two)
        two.poll()
        one.commit([change])
        heard.until(lambda: heard.facts.get((change.kind, change.key)) == change.value, "the fact")
        assert change in list(world.session().changes({change.kind}))
        one.commit([MetadataChange(change.kind, change.key, None)])
        heard.until(lambda: heard.facts[change.kind, change.key] is None, "no fact")
        assert list(world.session().changes({change.kind})) == []


def test_settings_of_many_topics_are_kept_at_once(world: World) -> None:
    session = world.session()
    heard = Heard(session)
    session.poll()
    session.commit([MetadataChange("config", f"topic:t{number}", {"retention.ms": "1"}) for number in range(250)])
    heard.until(lambda: len([name for kind, name in heard.facts if kind == "config"]) == 250, "all of them")
    assert len(list(session.changes({"config"}))) == 250


def test_brokers_that_change_the_same_node_lose_nothing(world: World) -> None:
    sessions = [world.session() for _ in range(4)]

    def write(session: ZooKeeperSession, quota: str) -> None:
        for number in range(20):
            scram = MetadataChange("scram", f"1:{quota}", SCRAM)
            session.commit([MetadataChange("acl", f'[2,3,"t","User:{quota}{number}","*",3,3]', {}), scram])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, sessions, "abcd"))
    assert len(list(sessions[0].changes({"acl"}))) == 80
    assert len(list(sessions[0].changes({"scram"}))) == 4


def test_entries_that_tell_of_changes_are_removed_after_fifteen_minutes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.session()
    heard = Heard(session)
    for number in range(3):
        session.commit([MetadataChange("config", "topic:t", {"retention.ms": str(number)})])
    heard.until(lambda: heard.facts.get(("config", "topic:t")) == {"retention.ms": "2"}, "the settings")
    assert len(world.other.get_children("/config/changes")) == 3
    monkeypatch.setattr(watched, "KEPT_MS", -1)
    session.commit([MetadataChange("config", "topic:t", {"retention.ms": "3"})])
    heard.until(lambda: world.other.get_children("/config/changes") == [], "entries are removed")
    assert heard.facts["config", "topic:t"] == {"retention.ms": "3"}


def test_a_failed_log_directory_is_told_to_the_controller_alone_and_once(world: World) -> None:
    one, two = world.session(), world.session()
    heard, others = Heard(one), Heard(two)
    elected(one)
    two.commit([MetadataChange("log_dirs", "2", {"event": 1})])
    heard.until(lambda: heard.facts.get(("log_dirs", "2")) == {"event": 1}, "the event")
    two.poll()
    assert ("log_dirs", "2") not in others.facts
    assert world.other.get_children("/log_dir_event_notification") == []
    event = b'{"version":1,"broker":1,"event":1}'
    world.other.create("/log_dir_event_notification/log_dir_event_", event, sequence=True)
    heard.until(lambda: ("log_dirs", "1") in heard.facts, "the event of a Kafka")


# ---------------------------------------------------------------- lost and found


def test_a_broker_id_of_another_session_is_free_when_that_session_is_over(world: World) -> None:
    """As after a kill -9: the node of the old session stays until that is over."""
    one = world.session()
    assert one.stale_ms > PATIENT_MS
    assert one.broker_epochs() == {}
    proxy, killed = world.proxied(PATIENT_MS)
    killed.announce(1, FACT)
    proxy.cut()
    with pytest.raises(DuplicateBrokerRegistration):
        one.announce(1, FACT)
    assert world.other.exists("/brokers/ids/1") is not None
    zookeepers.end_session(world.server, proxy, killed)
    assert world.other.exists("/brokers/ids/1") is None
    assert one.announce(1, FACT) > 0


def test_a_broker_takes_the_place_of_its_own_lost_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-7165: the old session may still live in ZooKeeper, as nobody could say goodbye."""
    monkeypatch.setattr(Options, "lost_s", 0.5)  # long before ZooKeeper ends it
    proxy, session = world.proxied(PATIENT_MS)
    heard = Heard(session)
    first = session.announce(1, FACT)
    proxy.cut()
    heard.until_state("unsure", "lost")
    assert world.other.exists("/brokers/ids/1") is not None
    proxy.heal()
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            again = session.renew()
            break
        except KafkaStorageError:
            assert time.monotonic() < deadline
    try:
        assert again.announce(1, FACT) > first
    finally:
        again.close()


def test_a_session_is_lost_by_its_own_clock_while_nothing_answers(world: World) -> None:
    proxy, session = world.proxied(4_500)
    heard = Heard(session)
    session.poll()
    begun_s = time.monotonic()
    proxy.cut()
    heard.until_state("unsure", "lost")
    assert time.monotonic() - begun_s > 2.7  # not at once, and though nothing was connected again
    with pytest.raises(KafkaStorageError, match="does not answer"):
        session.renew()


def test_a_call_to_a_zookeeper_that_stands_still_ends_soon(world: World) -> None:
    proxy, session = world.proxied(PATIENT_MS)
    heard = Heard(session)
    term = elected(session)
    session.commit_as_controller([topic()], term)
    proxy.swallow()
    with pytest.raises(KafkaStorageError, match="did not answer"):
        session.commit_as_controller([row(1, 1)], term)
    with pytest.raises(KafkaStorageError) as refused:
        session.commit_as_controller([row(1, 1)], term)
    assert "did not answer" not in str(refused.value)  # it was not asked at all
    heard.until_state("unsure")
    proxy.heal()
    heard.until_state("unsure", "back")  # the call ended before the session was lost
    assert rows_of(session) == [[[1], [1], 1, 1, 1]]


@pytest.mark.usefixtures("patient_zookeeper")  # skips where there is none
def test_a_session_outlives_the_server_that_it_was_connected_to(tmp_path: Path) -> None:
    with zookeepers.ensemble(tmp_path, extra=("maxSessionTimeout=60000",)) as servers, ExitStack() as stack:
        hosts = ",".join(server.address for server in servers)
        session = ZooKeeperSession(Options(Address.parse(f"{hosts}/kafka"), 60_000))
        stack.callback(session.close)
        heard = Heard(session)
        epoch = session.announce(1, FACT)
        term = elected(session)
        name = f"{session.zk.session_id:x}"
        next(server for server in servers if name in server.command("cons")).kill()
        deadline = time.monotonic() + WAIT_S
        while True:  # those that are left may have to elect a leader
            heard.until(lambda: heard.states[-1:] == ["back"], "the session is back")
            try:
                list(session.changes())
                session.commit_as_controller([topic()], term)
                break
            except KafkaStorageError:
                assert time.monotonic() < deadline
                heard.states.append("again")
        assert session.broker_epochs() == {1: epoch}
        assert "lost" not in heard.states


# ---------------------------------------------------------------- what is asked only


def test_who_only_reads_makes_no_node(world: World) -> None:
    """As `logkernel cluster check` does, maybe at a chroot that was mistyped."""
    session = world.session()
    assert list(session.changes({"cluster", "topic", "partition", "config", "broker"})) == []
    assert session.read_controller() == (None, 0)
    assert session.broker_epochs() == {}
    assert world.other.get_children("/") == []
    session.announce(1, FACT)
    assert world.other.exists("/brokers/ids/1") is not None


# ---------------------------------------------------------------- who may do what


def test_nodes_belong_to_the_brokers_user(world: World) -> None:
    session = world.session(digest=Secret("broker:secret"), set_acl=True)
    term = elected(session)
    session.commit_as_controller([topic()], term)
    session.commit([MetadataChange("scram", "1:alice", SCRAM)])
    assert world.json("/brokers/topics/t")["partitions"] == {"0": [1]}
    acls = {(acl.perms, acl.id.scheme) for acl in world.other.get_acls("/brokers/topics/t")[0]}
    assert acls == {(31, "digest"), (1, "world")}
    with pytest.raises(NoAuthError):
        world.other.get("/config/users/alice")
    with pytest.raises(ClusterAuthorizationFailed, match="ZooKeeper forbids this broker"):
        world.session(digest=Secret("stranger:secret")).announce(2, FACT)


def test_a_tree_that_was_made_has_what_kafka_makes(world: World) -> None:
    Heard(world.session())
    for path in ("/brokers/ids", "/brokers/seqid", "/config/ips", "/isr_change_notification", "/consumers"):
        assert world.other.get(path)[0] is None
    assert world.json("/feature") == {"features": {}, "version": 2, "status": 1}
    assert world.other.get("/latest_producer_id_block")[0] is None


def test_a_slow_answer_ends_no_start_and_is_not_waited_for_by_a_broker_that_serves(world: World) -> None:
    def slowly(after_s: float) -> None:
        world.server.pause()
        resume = threading.Timer(after_s, world.server.resume)
        resume.start()
        paused.append(resume)

    paused: list[threading.Timer] = []
    session = world.session(9_000)
    slowly(2.5)  # a call of a broker that serves is answered within a second and a half
    try:
        session.commit([MetadataChange("cluster", "", {"id": "slow"})])
        Heard(session)
        slowly(60.0)
        with pytest.raises(KafkaStorageError, match="did not answer"):
            list(session.changes({"cluster"}))
    finally:
        for timer in paused:
            timer.cancel()
        world.server.resume()
    assert [change.value for change in world.session().changes({"cluster"})] == [{"id": "slow"}]


# ---------------------------------------------------------------- settings that nobody waits for


class Reads:
    """Asks for settings of topics, and keeps what was answered."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.answers: list[dict[str, Any] | None] = []

    def ask(self, *topics: str) -> None:
        self.heard.session.read_topic_settings(topics, self._answered)

    def _answered(self, facts: Any) -> None:
        self.answers.append(None if facts is None else {each.key: each.value for each in facts})

    def next(self) -> dict[str, Any] | None:
        self.heard.until(lambda: bool(self.answers), "an answer")
        (answer,) = self.answers
        self.answers.clear()
        return answer


def test_settings_of_many_new_topics_are_read(world: World) -> None:
    one, two = world.session(), world.session()
    expected = many_settings(one)
    reads = Reads(Heard(two))
    reads.ask(*(f"t{i}" for i in range(251)))
    assert reads.next() == expected


def many_settings(session: ZooKeeperSession) -> dict[str, Any]:
    """Give 250 topics settings; returns what 251 have."""
    session.commit([MetadataChange("config", f"topic:t{i}", {"retention.ms": str(i)}) for i in range(250)])
    return {f"topic:t{i}": {"retention.ms": str(i)} if i < 250 else None for i in range(251)}


def test_a_zookeeper_before_3_6_is_asked_again_for_one_node_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = world.session(), world.session()
    expected = many_settings(one)
    reads = Reads(Heard(two))

    def unknown(self: Client, paths: Any) -> Any:
        answer = self.handler.async_result()
        answer.set_exception(UnimplementedError())
        return answer

    monkeypatch.setattr(Client, "read_many", unknown)
    reads.ask(*(f"t{i}" for i in range(251)))
    assert reads.next() is None
    reads.ask(*(f"t{i}" for i in range(251)))
    assert reads.next() == expected


def test_nobody_waits_for_settings_that_zookeeper_does_not_tell(world: World) -> None:
    """The read is answered when the connection is given up, and can be tried again when it is back."""
    world.session().commit([MetadataChange("config", "topic:t", {"retention.ms": "1"})])
    proxy, session = world.proxied(PATIENT_MS)
    reads = Reads(Heard(session))
    session.poll()
    proxy.deafen()
    reads.ask("t")
    for _ in range(10):
        session.poll()
    assert (reads.answers, reads.heard.states) == ([], [])
    proxy.heal()
    assert reads.next() is None
    reads.heard.until_state("unsure", "back")
    reads.ask("t")
    assert reads.next() == {"topic:t": {"retention.ms": "1"}}


def test_a_node_of_settings_that_is_none_of_kafkas_holds_no_topic_up(world: World) -> None:
    session = world.session()
    world.other.create("/config/topics/t", b"no JSON", makepath=True)
    reads = Reads(Heard(session))
    reads.ask("t", "u")
    assert reads.next() == {"topic:u": None}
