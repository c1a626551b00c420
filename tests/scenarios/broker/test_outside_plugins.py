"""Every built-in plugin is blocked and replaced by a copy that lives in an outside distribution.

So no built-in has a way in that a stranger has not: neither an import of the core, nor a name.
"""

import subprocess
import sys

import outside_copies
import pytest


@pytest.fixture(scope="module")
def built_ins():
    return outside_copies.built_ins()


@pytest.fixture
def outside(tmp_path):
    """A folder for sys.path with a distribution `acme-copies` that holds a copy of every plugin."""
    return outside_copies.make(tmp_path / "site", hide=False, prefix="acme-")


def blocking(folder, built_ins, *, allow="acme-copies"):
    config = folder / "broker.yaml"
    config.write_text(
        f"broker: {{log.dirs: {folder / 'data'}}}\nplugins: {{block: [{', '.join(built_ins)}], allow: [{allow}]}}\n"
    )
    return config


def test_clients_are_served_by_copies_alone(tmp_path, built_ins, outside, monkeypatch, start_broker):
    confluent = pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("PYTHONPATH", str(outside))
    broker = start_broker("--config", str(blocking(tmp_path, built_ins)))
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        producer = confluent.Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec})
        for number in range(100):
            producer.produce("t", f"{codec} {number}".encode() * 20)
        assert producer.flush(20) == 0
    consumer = confluent.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    seen = []
    while len(seen) < 100 * len(codecs):
        found = consumer.consume(100, 20)
        assert found, f"only {len(seen)} came"
        seen += [message.value() for message in found]
    consumer.commit(asynchronous=False)
    consumer.close()
    assert seen[-1] == b"zstd 99" * 20


def test_no_module_of_the_built_ins_is_loaded(tmp_path, built_ins, outside):
    program = (
        "import sys\n"
        "from logkernel.broker.build import build\n"
        "broker = build(sys.argv[1]); broker.start()\n"
        "kernel = broker.runtime.kernel; names = kernel.names('codec')\n"
        "[kernel.codec(name) for name in names]; kernel.transport('tcp'); broker.close()\n"
        "print(names, [m for m in sys.modules if m.startswith('logkernel.plugins')])\n"
    )
    command = [sys.executable, "-c", program, str(blocking(tmp_path, built_ins))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(outside)})
    assert done.stdout.strip() == "['gzip', 'lz4', 'snappy', 'zstd'] []"


def test_copies_bring_the_settings_and_topics_of_services(tmp_path, built_ins, outside):
    """Both stood in the core, so that a stranger's service had a smaller door than a built-in."""
    program = (
        "import sys\n"
        "from logkernel.broker.build import build\n"
        "broker = build(sys.argv[1], ['group.share.delivery.count.limit=7']); broker.start()\n"
        "known = broker.runtime.config.definitions\n"
        "print(known.group['consumer.session.timeout.ms'].plugin, known.broker['transaction.max.timeout.ms'].plugin)\n"
        "print(sorted(broker.metadata.controller.internal))\n"
        "print(broker.cluster.group_setting('g', 'share.delivery.count.limit')); broker.close()\n"
    )
    command = [sys.executable, "-c", program, str(blocking(tmp_path, built_ins))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(outside)})
    assert done.stdout.splitlines() == [
        "acme-service-groups acme-service-transactions",
        "['__consumer_offsets', '__share_group_state', '__transaction_state']",
        "7",
    ]


def test_a_distribution_that_is_not_allowed_is_left_out(tmp_path, built_ins, outside, monkeypatch):
    config = blocking(tmp_path, built_ins, allow="other")
    command = [sys.executable, "-m", "logkernel", "serve", "--config", str(config), "--listen", "127.0.0.1:0"]
    monkeypatch.setenv("PYTHONPATH", str(outside))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "no plugin provides the coordination 'local'" in done.stderr
