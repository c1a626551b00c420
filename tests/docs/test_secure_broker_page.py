"""The brokers of docs/secure-broker.md start, and let in whom the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from secure_brokers import write_files

import logkernel
from logkernel.client.admin.access import AclBinding, ScramUpsertion
from logkernel.errors import TopicAuthorizationFailed

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "secure-broker.md").read_text(encoding="utf-8")
StartBroker = Callable[..., Any]


def settings_of(section: str, folder: Path) -> Path:
    """The properties that a section of the page shows, with the certificates of `folder`, for a broker that clients
    reach at 127.0.0.1."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (shown, *_) = re.findall(r"^```properties\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    here = shown.replace("/etc/logkernel", str(folder))
    write_files(folder, "127.0.0.1")
    (folder / "127.0.0.1.pem").rename(folder / "broker.pem")
    file = folder / "broker.properties"
    file.write_text(re.sub(r"^advertised\.listeners=.*\n", "", here, flags=re.MULTILINE))
    return file


def as_user(folder: Path, user: str, password: str, mechanism: str) -> dict[str, str]:
    return {
        "security_protocol": "SASL_SSL", "sasl_mechanism": mechanism, "sasl_username": user, "sasl_password": password,
        "ssl_ca_location": str(folder / "ca.pem"),
    }  # fmt: skip


def test_the_super_user_of_the_listeners_logs_in_and_lets_ann_in(start_broker: StartBroker, tmp_path: Path) -> None:
    """Nobody could be the super user, so nobody could do anything."""
    file, data = settings_of("Listeners", tmp_path), tmp_path / "data"
    data.mkdir()
    command = "cluster users set admin --password-stdin --data"
    asked = [sys.executable, "-m", "logkernel", *command.split(), str(data)]
    done = subprocess.run(asked, input="hush", capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == "", "what the broker of the folder will enforce is not known"
    broker = start_broker("--config", str(file), data=data, listen="OUT://127.0.0.1:0")
    ann, admin = as_user(tmp_path, "ann", "her password", "PLAIN"), as_user(tmp_path, "admin", "hush", "SCRAM-SHA-512")
    with logkernel.connect(broker.bootstrap, **ann) as hers, logkernel.connect(broker.bootstrap, **admin) as his:
        with pytest.raises(TopicAuthorizationFailed):
            hers.create_topic("orders")
        with his.admin() as allowing:
            allowing.create_acls(AclBinding("topic", "orders", "User:ann", "create"))
        hers.create_topic("orders")
    assert "warning" not in broker.log().lower()


def test_the_admin_of_the_brokers_listeners_adds_the_user_of_the_brokers(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    """The listener of clients had no key, and no user that could add one."""
    file = settings_of("Between brokers", tmp_path)
    broker = start_broker("--config", str(file), listen="BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0")
    brokers, clients = broker.addresses
    with (
        logkernel.connect(clients, **as_user(tmp_path, "admin", "admin's password", "PLAIN")) as log,
        log.admin() as admin,
    ):
        admin.alter_user_scram_credentials(ScramUpsertion("broker", "…", "SCRAM-SHA-512", 4096))
    with logkernel.connect(brokers, **as_user(tmp_path, "broker", "…", "SCRAM-SHA-512")) as log:
        log.create_topic("orders")
