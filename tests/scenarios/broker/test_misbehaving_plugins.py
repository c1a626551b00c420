"""Every hook, and every way in which a plugin can misbehave in it (docs/plugins/misbehaving.md).

| | raises | returns nonsense | is missing | does not return |
|---|---|---|---|---|
| provides | refused, named | refused, named | refused, with the known names | named while it hangs |
| describes | the kernel is refused, named | likewise | – | likewise |
| tells | noted, the others are told | – | – | likewise |
| decides | what it decides for fails safely | likewise | – | likewise; then not asked for a minute |
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from logkernel import hookspecs
from logkernel.broker.build import build
from logkernel.broker.commands import status
from logkernel.broker.hang_watch import LOOK_MS, HangWatch
from logkernel.cluster.cluster import open_cluster
from logkernel.embed import EmbeddedLog
from logkernel.errors import KafkaError, PluginError
from logkernel.guards.isr import GuardedIsr
from logkernel.kernel import Kernel
from logkernel.plugin_faults import BUDGET_MS, SLOW_MS, WINDOW_S, Origin, PluginFaults, TimeBudget

PROVIDED: dict[str, Callable[[Kernel], Any]] = {
    "logkernel_partitioner": lambda kernel: kernel.partitioner("bad", {}, 0),
    "logkernel_interceptor": lambda kernel: kernel.interceptor("bad", {}),
    "logkernel_metrics_reporter": lambda kernel: kernel.metrics_reporter("bad", {}),
    "logkernel_codec": lambda kernel: kernel.codec("bad"),
    "logkernel_election": lambda kernel: kernel.election("bad", {}),
    "logkernel_isr": lambda kernel: kernel.isr("bad", {}),
    "logkernel_placement": lambda kernel: kernel.placement("bad", {}),
    "logkernel_cleanup": lambda kernel: kernel.cleanup("bad", {}),
    "logkernel_compaction_strategy": lambda kernel: kernel.compaction_strategy("bad", {}),
    "logkernel_produce_interceptor": lambda kernel: kernel.produce_interceptor("bad", {}),
    "logkernel_fetch_filter": lambda kernel: kernel.fetch_filter("bad", {}),
    "logkernel_quota": lambda kernel: kernel.quota("bad", {}),
    "logkernel_assignor": lambda kernel: kernel.assignor("bad"),
    "logkernel_task_assignor": lambda kernel: kernel.task_assignor("bad"),
    "logkernel_authorizer": lambda kernel: kernel.authorizer("bad", {}),
    "logkernel_password_checker": lambda kernel: kernel.password_checker("bad", {}),
    "logkernel_client_quota_callback": lambda kernel: kernel.client_quota_callback("bad", {}),
    "logkernel_transport": lambda kernel: kernel.transport("bad"),
    "logkernel_coordination": lambda kernel: kernel.coordination("bad", lambda: None),  # type: ignore[arg-type, return-value]
    "logkernel_service": lambda kernel: kernel.service("bad", {}, None),  # type: ignore[arg-type]
    "logkernel_connector": lambda kernel: kernel.connector("bad"),
    "logkernel_decoder": lambda kernel: kernel.decoder("bad"),
}
DESCRIBED: dict[str, Callable[[Kernel], Any]] = {
    "logkernel_services": lambda kernel: kernel.services(),
    "logkernel_names": lambda kernel: kernel.declarations(),
    "logkernel_settings": lambda kernel: kernel.declarations(),
}
TOLD: dict[str, dict[str, Any]] = {
    "logkernel_broker_started": {"node_id": 1, "addresses": ()},
    "logkernel_broker_stopping": {"node_id": 1},
    "logkernel_topic_created": {"topic": "t", "partitions": 1},
    "logkernel_topic_deleted": {"topic": "t"},
    "logkernel_leader_changed": {"topic": "t", "partition": 0, "leader": 1, "leader_epoch": 0},
    "logkernel_isr_changed": {"topic": "t", "partition": 0, "isr": (1,)},
    "logkernel_segment_rolled": {"topic": "t", "partition": 0, "base_offset": 0, "size_bytes": 1},
    "logkernel_cleanup_done": {"topic": "t", "partition": 0, "policy": "delete", "log_start_offset": 0},
}
HOOKS = {name for name in vars(hookspecs) if name.startswith("logkernel_")}


def test_the_table_has_every_hook() -> None:
    assert {*PROVIDED, *DESCRIBED, *TOLD} == HOOKS


def misbehaving(hook: str, act: Callable[[], Any]) -> Any:
    """A plugin with this one hook, which does `act`; the object's class is `Bad`."""

    @hookspecs.hookimpl
    def implementation(self: object) -> Any:
        return act()

    return type("Bad", (), {hook: implementation})()


def fail() -> Any:
    raise ZeroDivisionError("a bug of its author")


def told(kernel: Kernel) -> list[tuple[str, str, str]]:
    return [(fault.origin.plugin, fault.origin.file, fault.place) for fault in kernel.faults]


@pytest.mark.parametrize("hook", PROVIDED)
@pytest.mark.parametrize(
    ("act", "what"),
    [
        (fail, "ZeroDivisionError: a bug of its author"),
        (lambda: 5, "it returned 5, which lacks"),
        (lambda: dict, "it returned <class 'dict'>, which is a class; return dict()"),
    ],
    ids=["raises", "nonsense", "a class"],
)
def test_an_object_that_cannot_be_had_is_refused_and_named(hook: str, act: Callable[[], Any], what: str) -> None:
    kernel = Kernel(plugins=[misbehaving(hook, act)])
    with pytest.raises(PluginError) as refused:
        PROVIDED[hook](kernel)
    assert f"plugin 'Bad' in {__file__!r} failed in {hook}: {what}" in str(refused.value)
    assert "; fix or uninstall it, or block it by plugins.block" in str(refused.value)
    assert told(kernel) == [("Bad", __file__, hook)]


@pytest.mark.parametrize("hook", [hook for hook in PROVIDED if hook != "logkernel_decoder"])
def test_a_name_that_nobody_provides_is_refused_with_those_that_are_known(hook: str) -> None:
    """But for decoders: not every topic has one."""
    with pytest.raises(PluginError, match=r"no plugin provides the .* 'bad' \(known: "):
        PROVIDED[hook](Kernel())


@pytest.mark.parametrize("hook", DESCRIBED)
@pytest.mark.parametrize(
    ("act", "what"),
    [
        (fail, "ZeroDivisionError: a bug of its author"),
        (lambda: 5, "TypeError: "),
        (lambda: ["x"], "it returned 'x', "),
    ],
    ids=["raises", "nonsense", "wrong rows"],
)
def test_what_a_plugin_says_of_itself_is_refused_and_named(hook: str, act: Callable[[], Any], what: str) -> None:
    kernel = Kernel(plugins=[misbehaving(hook, act)])
    with pytest.raises(PluginError) as refused:
        DESCRIBED[hook](kernel)
    assert f"plugin 'Bad' in {__file__!r} failed in {hook}: {what}" in str(refused.value)


@pytest.mark.parametrize("hook", TOLD)
def test_an_event_that_fails_in_one_plugin_is_noted_and_told_to_the_others(hook: str) -> None:
    heard: list[str] = []
    kernel = Kernel(plugins=[misbehaving(hook, lambda: heard.append(hook)), misbehaving(hook, fail)])
    kernel.tell(hook, **TOLD[hook])
    assert heard == [hook]
    assert told(kernel) == [("Bad", __file__, hook)]


@pytest.mark.parametrize("hook", sorted(HOOKS))
def test_a_hook_that_does_not_return_is_named(hook: str) -> None:
    called, woken = threading.Event(), threading.Event()

    def hang() -> None:
        called.set()
        assert woken.wait(300)

    kernel = Kernel(plugins=[misbehaving(hook, hang)])

    def ask() -> None:
        if hook in TOLD:
            kernel.tell(hook, **TOLD[hook])
        else:
            with contextlib.suppress(PluginError):
                (PROVIDED | DESCRIBED)[hook](kernel)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert called.wait(60)
        watch = HangWatch(kernel.faults.running, lambda hangs: None)
        found = [watch.look() for _ in range(SLOW_MS // LOOK_MS + 1)]
    finally:
        woken.set()
        thread.join(60)
    (hang_found,) = found[-1]
    assert (hang_found.origin, hang_found.place) == (Origin("Bad", "", __file__), hook)


# ---------------------------------------------------------------- what decides


class Decides:
    """An object of every kind that a broker asks, which misbehaves in each of its methods."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act

    def plan(self, log: Any) -> Any:
        return self._act()

    def place(self, facts: Any) -> Any:
        return self._act()

    def elect(self, candidates: Any) -> Any:
        return self._act()

    def is_in_sync(self, follower: Any) -> Any:
        return self._act()

    def on_record(self, record: Any, write: Any) -> Any:
        return self._act()

    def passes(self, record: Any, read: Any) -> Any:
        return self._act()

    def throttle(self, usage: Any) -> Any:
        return self._act()


class Deciding:
    """Their plugin."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    @hookspecs.hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        kinds = ("cleanup policy", "placement", "election", "isr", "produce interceptor", "fetch filter", "quota")
        return [(kind, "bad") for kind in kinds]

    def _object(self, name: str) -> Decides | None:
        return Decides(self.act) if name == "bad" else None

    @hookspecs.hookimpl
    def logkernel_cleanup(self, name: str) -> Any:
        return self._object(name)

    @hookspecs.hookimpl
    def logkernel_placement(self, name: str) -> Any:
        return self._object(name)

    @hookspecs.hookimpl
    def logkernel_election(self, name: str) -> Any:
        return self._object(name)

    @hookspecs.hookimpl
    def logkernel_isr(self, name: str, settings: Any) -> Any:
        return self._object(name)

    @hookspecs.hookimpl
    def logkernel_produce_interceptor(self, name: str, settings: Any) -> Any:
        return self._object(name)

    @hookspecs.hookimpl
    def logkernel_fetch_filter(self, name: str, settings: Any) -> Any:
        return self._object(name)

    @hookspecs.hookimpl
    def logkernel_quota(self, name: str, settings: Any) -> Any:
        return self._object(name)


DECIDED: dict[str, Callable[[EmbeddedLog], Any]] = {
    "cleanup_policy": lambda log: log.apply_retention("t"),
    "produce_interceptors": lambda log: log.append("t", b"x"),
}
"""Topic setting that names the plugin → what has it asked. Fetch filters and quotas have tests of their own."""
ACTS = pytest.mark.parametrize("act", [fail, lambda: 5], ids=["raises", "nonsense"])


@pytest.mark.parametrize("setting", DECIDED)
@ACTS
def test_what_it_decides_for_fails_safely_and_the_rest_goes_on(setting: str, act: Callable[[], Any]) -> None:
    kernel = Kernel(plugins=[Deciding(act)])
    with EmbeddedLog(build(None, [], in_memory=True, kernel=kernel)) as log:
        log.create_topic("ok", partitions=1)
        log.append("ok", b"before")
        log.create_topic("t", partitions=1, **{setting: "bad"})
        with pytest.raises((KafkaError, PluginError)):
            DECIDED[setting](log)
        log.append("ok", b"after")
        assert [record.value for record in log.read("ok")] == [b"before", b"after"]
        found: list[dict[str, Any]] = []
        status(log.broker, {}, found.append)
        assert {(row["plugin"], row["distribution"], row["file"]) for row in found[0]["plugins"]} == {
            ("Deciding", "", __file__)
        }


@ACTS
def test_a_cluster_goes_on_beside_topics_of_a_plugin_that_misbehaves(act: Callable[[], Any]) -> None:
    """A topic that cannot be placed is not created; one whose ISR policy fails goes by `replica.lag.time.max.ms`; one
    whose election fails has no leader until another strategy elects one, and then has all of its records."""
    with open_cluster(brokers=2, plugins=[Deciding(act)]) as cluster:
        with pytest.raises(KafkaError):
            cluster.create_topic("placed", partitions=1, replication_factor=2, placement="bad")
        cluster.create_topic("ok", assignment={0: [1, 2]})
        cluster.create_topic("synced", assignment={0: [1, 2]}, isr="bad")
        cluster.create_topic("elected", assignment={0: [1, 2]}, election="bad")
        with cluster.producer(acks="all") as producer:
            for topic in ("ok", "synced", "elected"):
                cluster.wait_for_isr(topic, 0, 2)
                producer.send(topic, b"kept").result(60)
            cluster.kill(1)
            assert cluster.wait_for_leader("ok", 0, other_than=1) == 2
            producer.send("ok", b"goes on").result(60)
        assert cluster.leader("elected", 0) is None
        cluster.start(1)
        with cluster.admin() as admin:
            admin.alter_configs({("topic", "elected"): {"election": "clean"}})
        cluster.wait_for_leader("elected", 0)
        with cluster.consumer("ok", "synced", "elected", auto_offset_reset="earliest") as consumer:
            found: list[bytes | None] = []
            while len(found) < 4:
                found += [record.value for record in consumer.poll(10)]
        assert sorted(value for value in found if value is not None) == [b"goes on", b"kept", b"kept", b"kept"]


def test_who_holds_the_broker_up_too_long_is_not_asked_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A policy that took two seconds for each partition took all of the broker's time."""
    faults, now_s, calls = PluginFaults(), [1000.0], [0]
    monkeypatch.setattr("logkernel.guards.guard.monotonic", lambda: now_s[0])

    class Slow:
        def is_in_sync(self, follower: Any) -> bool:
            calls[0] += 1
            now_s[0] += 4
            return True

    one, other = (GuardedIsr(Slow(), name, faults, lambda: Origin("acme", "acme-isr")) for name in ("slow", "another"))
    facts: Any = None
    assert [one.is_in_sync(facts) for _ in range(3)] == [True] * 3
    assert calls[0] * 4_000 >= BUDGET_MS
    with pytest.raises(PluginError, match="of distribution 'acme-isr': ISR policy slow is not asked for 60 s"):
        one.is_in_sync(facts)
    assert calls[0] == 3
    assert other.is_in_sync(facts), "others are asked"
    now_s[0] += WINDOW_S
    assert one.is_in_sync(facts), "it gets another chance"
    assert sum("is not asked for 60 s" in message for message in caplog.messages) == 1


def test_slow_calls_that_are_rare_are_borne() -> None:
    budget = TimeBudget()
    for minute in range(10):
        assert not budget.spent("election x", BUDGET_MS - 1, minute * (WINDOW_S + 1.0))
    assert budget.resting == {}
