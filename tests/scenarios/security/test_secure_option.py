"""The option `--secure` of `logkernel serve`: what does not go with it, and its folder at a start without it."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from logkernel.cli.secure import check_protected, prepare
from logkernel.config.broker import BrokerConfig
from logkernel.kernel import Kernel
from logkernel.security.development import obtain

WAIT_S = 300


def refused(folder: Path, *words: str) -> str:
    """What `serve` says that ends with 2."""
    command = [sys.executable, "-m", "logkernel", "serve", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set listeners=PLAINTEXT://127.0.0.1:0", "--secure sets listeners itself; use --listen HOST:PORT"),
        ("--set sasl.enabled.mechanisms=PLAIN", "--secure sets sasl.enabled.mechanisms itself; leave it out, or"),
        ("--set super.users=User:ann", "--set: super.users=User:ann: --secure sets super.users itself"),
        ("--set authorizer.class.name=", "--secure sets authorizer.class.name itself"),
        ("--set ssl.keystore.location=/my.pem", "--secure sets ssl.keystore.location itself"),
        ("--set listener.security.protocol.map=SASL_SSL:PLAINTEXT", "has one listener, which speaks SASL_SSL"),
        ("--listen PLAINTEXT://127.0.0.1:0", "--secure makes the listener SASL_SSL; give --listen 127.0.0.1:0"),
        ("--listen a:1,b:2", "give one HOST:PORT"),
        ("--config none.yaml", "leave out --config"),
    ],
)
def test_an_option_that_secure_would_replace_is_refused(words: str, said: str, tmp_path: Path) -> None:
    """It was replaced without a word."""
    assert said in refused(tmp_path, "--secure", *words.split())
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A data directory as `--secure` makes it, before there is a log."""
    obtain(tmp_path / "data" / "security")
    return tmp_path / "data"


@pytest.mark.parametrize("words", ["", "--listen 127.0.0.1:0", "--set super.users=User:ann", "--config own.yaml"])
def test_the_folder_of_a_secure_broker_is_not_opened_to_everybody(words: str, made: Path) -> None:
    """Without `--secure` it was served in plain text, and nobody was asked who they are."""
    (made.parent / "own.yaml").write_text("broker:\n  num.partitions: 3\n")
    said = refused(made.parent, *words.split())
    assert "data was served by --secure, and would be open to everybody without it; start it with --secure" in said
    assert [each.name for each in made.iterdir()] == ["security"]


@pytest.mark.parametrize(
    "settings",
    [
        {"listeners": "PLAINTEXT://127.0.0.1:0"},
        {"authorizer.class.name": "standard"},
        {"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT"},
    ],
    ids=["listeners", "authorizer", "protocols"],
)
def test_own_settings_may_say_how_the_folder_of_a_secure_broker_is_served(settings: dict[str, str], made: Path) -> None:
    check_protected(BrokerConfig.load(None, settings, Kernel().declarations()), [str(made)])


def test_keys_lie_in_the_first_data_directory(tmp_path: Path) -> None:
    """They lay in ./data, where a later start without `--secure` did not find them."""
    given = Namespace(coordination=None, config=None)
    made, _ = prepare(given, "./data", "127.0.0.1:0", [f"log.dirs={tmp_path}/a,{tmp_path}/b"])
    assert made.client == tmp_path / "a" / "security" / "client.properties"
