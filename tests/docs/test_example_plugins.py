"""The example distribution: installed by pip as a stranger's would be, found by entry points, and at work."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from outside_distribution import pip_install, put_on_path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "acme-plugins"
LEFTOVERS = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed distribution, for PYTHONPATH."""
    source = tmp_path_factory.mktemp("source") / "acme-plugins"
    shutil.copytree(EXAMPLE, source, ignore=LEFTOVERS)
    target = tmp_path_factory.mktemp("site")
    pip_install(target, source)
    return target


@pytest.fixture
def on_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The distribution importable here and in the processes that a test starts."""
    put_on_path(installed, monkeypatch)
    return installed


def test_the_kernel_finds_them(on_path: Path) -> None:
    from logkernel.kernel import Kernel

    kernel = Kernel()
    assert "geo" in kernel.names("partitioner")
    assert "rack_first" in kernel.names("election")
    assert "acme.geo.regions" in {one.name for declared in kernel.declarations() for one in declared.settings}


def test_an_operator_may_leave_them_out(on_path: Path) -> None:
    from logkernel.kernel import Kernel

    assert "geo" not in Kernel(allow=[]).names("partitioner")
    assert "geo" not in Kernel(block=["acme-geo"]).names("partitioner")
    assert "rack_first" in Kernel(block=["acme-geo"]).names("election")


def test_geo_keeps_regions_apart(on_path: Path) -> None:
    from logkernel.kernel import Kernel

    geo = Kernel().partitioner("geo", {"acme.geo.regions": ("eu", "us")}, seed=1)
    homes = {
        region: {geo.partition(b"%s/%d" % (region, number), None, 6, range(6)) for number in range(200)}
        for region in (b"eu", b"us")
    }
    assert homes == {b"eu": {0, 1, 2}, b"us": {3, 4, 5}}
    assert geo.partition(b"eu/7", b"x", 6, range(6)) == geo.partition(b"eu/7", b"y", 6, range(6))
    assert {geo.partition(None, None, 6, [2, 4]) for _ in range(50)} == {2, 4}


@pytest.mark.parametrize(
    ("isr", "alive", "unclean", "leader", "clean"),
    [
        ((201, 202, 101), {202, 101}, False, 202, True),
        ((201, 101), {101, 202}, False, 101, True),
        ((201,), {202, 101}, False, None, True),
        ((201,), {101, 202}, True, 202, False),
    ],
)
def test_rack_first(
    on_path: Path, isr: tuple[int, ...], alive: set[int], unclean: bool, leader: int | None, clean: bool
) -> None:
    from logkernel.contracts import Candidates
    from logkernel.kernel import Kernel

    candidates = Candidates((201, 101, 202), isr, frozenset(alive), unclean)
    elected = Kernel().election("rack_first", {}).elect(candidates)
    if leader is None:
        assert elected is None
        return
    assert elected is not None
    assert (elected.leader, elected.clean) == (leader, clean)
    assert set(elected.isr) <= set(alive)


@pytest.mark.interop
def test_the_observer_is_told_of_rolls(on_path: Path, start_broker: Any, tmp_path: Path) -> None:
    """A serving broker with all three, set up by a file."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    path = tmp_path / "logkernel.yaml"
    path.write_text(
        "plugins: {allow: [acme-plugins]}\n"
        "topics:\n"
        "  orders: {partitions: 2, partitioner: geo, election: rack_first, segment.bytes: 1048576,"
        ' acme.geo.regions: "eu,us"}\n'
    )
    broker = start_broker("--config", str(path))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 100})
    for _ in range(3000):
        producer.produce("orders", b"x" * 1000, partition=0)
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, "orders")
    entries = admin.describe_configs([resource])[resource].result(120)
    assert entries["partitioner"].value == "geo"
    assert entries["acme.geo.regions"].value == "eu,us"
    assert broker.terminate() == 0
    assert "segment closed: topic=orders partition=0 base=0 bytes=" in broker.log()


@pytest.mark.interop
def test_a_plugin_that_is_not_allowed_does_not_answer(on_path: Path, start_broker: Any, tmp_path: Path) -> None:
    path = tmp_path / "logkernel.yaml"
    path.write_text("plugins: {allow: []}\ntopics:\n  orders: {partitions: 2, partitioner: geo}\n")
    with pytest.raises(AssertionError, match="geo"):
        start_broker("--config", str(path))


@pytest.mark.parametrize("networked", [False, True])
def test_a_producer_gives_a_partitioner_its_topic_s_settings(on_path: Path, networked: bool) -> None:
    import logkernel

    settings = {"partitioner": "geo", "acme.geo.regions": "us,eu"}
    with logkernel.open() as log:
        log.create_topic("orders", partitions=2, config=settings)
        with (logkernel.connect(log.listen()) if networked else log).producer() as producer:
            deliveries = [producer.send("orders", b"v", key=key) for key in (b"us/1", b"us/2", b"eu/1", b"eu/2")]
            assert [delivery.result(120).partition for delivery in deliveries] == [0, 0, 1, 1]
