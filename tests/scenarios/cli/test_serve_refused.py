"""`logkernel serve` that is refused: the option is named, and no folder is left behind."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from logkernel.cli.cluster_protection import check


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--listen 9092", "logkernel: --listen: listeners=9092: '9092' is not an address"),
        ("--coordination bogus://x", "logkernel: --coordination bogus://x: bogus.connect=x: no setting of Kafka"),
        ("--as-version 1.0", "logkernel: --as-version: logkernel.as.version=1.0: String must be one of: 2.8, 3.0,"),
        ("--listen nohost.invalid:9092", "logkernel: cannot listen on nohost.invalid:9092: "),
        ("--listen nohost.invalid:9092 --brokers 2", "logkernel: cannot listen on nohost.invalid:9092: "),
    ],
)
def test_an_option_is_named_and_no_folder_is_left_behind(words: str, said: str, tmp_path: Path) -> None:
    """`--set` was named, and ./data was there after a failed start."""
    command = [sys.executable, "-m", "logkernel", "serve", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith(said), done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["--brokers 3", "--brokers 3 --processes", "--brokers 1"])
def test_secure_brokers_of_one_command_are_refused(words: str, tmp_path: Path) -> None:
    """They were served in plain text, without a word."""
    done = refused(tmp_path, "--listen", "127.0.0.1:0", "--secure", *words.split())
    assert "--secure is for one broker that stands alone" in done
    assert "start each broker by itself with --coordination zookeeper://" in done


SECURED = "listeners=SASL_SSL://127.0.0.1:0\n"
MAPPED = "listeners=OUT://127.0.0.1:0\nlistener.security.protocol.map=OUT:SSL\n"
UNNAMED = "listener.security.protocol.map=PLAINTEXT:SSL\n"


@pytest.mark.parametrize("processes", [[], ["--processes"]], ids=["one process", "processes"])
@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        (SECURED, "", "cluster.properties:1: the listener SASL_SSL speaks SASL_SSL, and brokers of --brokers"),
        (MAPPED + "inter.broker.listener.name=OUT\n", "", "cluster.properties:1: the listener OUT speaks SSL, and"),
        ("", "--listen SASL_SSL://127.0.0.1:0", "--listen: the listener SASL_SSL speaks SASL_SSL, and"),
        ("", "--listen OUT://127.0.0.1:0", "nothing says which protocol the listener OUT speaks; add OUT:PROTOCOL to"),
        (UNNAMED, "", "cluster.properties:1: the listener PLAINTEXT speaks SSL"),
    ],
)  # fmt: skip
def test_a_secured_listener_of_brokers_of_one_command_is_refused(
    file: str, words: str, said: str, processes: list[str], tmp_path: Path
) -> None:
    """It was passed over, and plain text was spoken in its place."""
    path = tmp_path / "cluster.properties"
    path.write_text(file)
    given = ["--brokers", "2", "--config", str(path), *words.split(), *processes]
    done = refused(tmp_path, *given)
    assert said in done
    assert sorted(tmp_path.iterdir()) == [path]


AUTHORIZERS = ["standard", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"]


@pytest.mark.parametrize("name", AUTHORIZERS)
def test_processes_that_would_refuse_one_another_are_refused(name: str, tmp_path: Path) -> None:
    given = ["--set", f"authorizer.class.name={name}", "--set", "super.users=User:admin"]
    done = refused(tmp_path, "--listen", "127.0.0.1:0", "--brokers", "2", "--processes", *given)
    assert "reach one another as User:ANONYMOUS, and would refuse each other; leave out --processes, or add" in done


@pytest.mark.parametrize(
    ("listen", "settings"),
    [
        ("PLAINTEXT://h:1", []),
        ("OUT://h:1", ["listener.security.protocol.map=OUT:PLAINTEXT"]),
        ("h:1", ["authorizer.class.name=standard", "super.users=User:ann;User:ANONYMOUS"]),
        ("h:1", ["authorizer.class.name=standard", "allow.everyone.if.no.acl.found=true"]),
    ],
)
def test_plain_text_that_was_asked_for_is_not_refused(listen: str, settings: list[str]) -> None:
    check(Namespace(config=None, listen=listen, processes=True), settings)


def refused(folder: Path, *words: str) -> str:
    """What `serve` says that ends with 2, without a traceback."""
    command = [sys.executable, "-m", "logkernel", "serve", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("logkernel: "), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr
