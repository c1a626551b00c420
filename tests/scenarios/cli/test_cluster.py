"""Commands for the cluster and for who may do what in it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from shells import Shell

from logkernel.cli import main


def test_the_cluster(shell: Shell) -> None:
    shell("topic create a")
    (found,) = shell.rows("cluster info")
    assert (found["controller"], found["brokers"], found["topics"]) == (1, 1, 1)
    assert found["clusterId"] in shell("cluster info")
    host, _, port = shell.address.rpartition(":")
    assert shell.table("cluster brokers") == [["1*", host, port, "active"]]
    assert shell.table("cluster log-dirs -t a")[0][:4] == ["1", "/memory", "online", "1"]
    assert shell.rows("cluster log-dirs --broker 1")[0]["replicas"][0]["topic"] == "a"
    assert ["group.version", "0", "1", "1"] in shell.table("cluster features")
    shell("cluster features --set group.version=0 --how unsafe-downgrade --dry-run")
    assert ["group.version", "0", "1", "0"] in shell.table(
        "cluster features --set group.version=0 --how unsafe-downgrade"
    )
    shell("cluster features --set warp=9", 1)
    shell("cluster quorum", 1)
    assert "quorum" in shell.error
    assert shell("cluster elect a").split("\n")[-2].split() == ["a-0", "already", "the", "leader"]
    assert shell("cluster reassignments") == "No reassignment is in progress.\n"
    shell("cluster reassignments --set a-0=1")
    shell("cluster reassignments --set a-0=1,2", 1)
    shell("cluster reassignments --cancel a-0", 1)
    shell("cluster reassignments --cancel a", 2)


def test_who_may_do_what(shell: Shell) -> None:
    shell("cluster acls add User:ann read topic orders")
    shell("cluster acls add User:bob all group g --deny --host 10.0.0.1 --pattern prefixed")
    assert len(shell.table("cluster acls list")) == 2
    assert shell.rows("cluster acls list --resource topic --name orders --pattern match") == [
        {"principal": "User:ann", "host": "*", "permission": "allow", "operation": "read", "resource": "topic",
         "name": "orders", "pattern": "literal"}
    ]  # fmt: skip
    assert len(shell.table("cluster acls remove --principal User:ann")) == 1
    shell("cluster acls remove", 2)
    assert len(shell.table("cluster acls remove --all")) == 1
    shell("cluster acls add User:ann fly topic orders", 2)


def test_a_broker_that_enforces_nothing_is_said_to(shell: Shell) -> None:
    for line in ("acls add User:ann read topic orders", "acls list", "acls remove --all"):
        shell(f"cluster {line} --json", stdin=b"secret\n")
        assert "logkernel: warning: this broker keeps" in shell.error, line
        assert "does not enforce them" in shell.error


def test_users_of_a_broker_that_asks_no_client_to_log_in_are_said_to_be_of_no_use(shell: Shell) -> None:
    for line in ("users list", "users set ann --password-stdin", "users delete ann"):
        shell(f"cluster {line} --json", stdin=b"secret\n")
        assert "logkernel: warning: no listener of this broker asks clients to log in" in shell.error, line


def test_users_of_a_folder_leave_the_log_of_the_process_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brokers in the same process said no more that they enforce nothing."""
    before = logging.getLogger("logkernel.access").level
    assert main(["cluster", "users", "list", "--data", str(tmp_path)]) == 0
    assert "warning" not in capsys.readouterr().err
    assert logging.getLogger("logkernel.access").level == before


def test_quotas_are_set_listed_and_unset(shell: Shell) -> None:
    shell("cluster quotas set producer_byte_rate=1024 --user ann --client-id default")
    shell("cluster quotas set request_percentage=50.5 --user default")
    assert shell.rows("cluster quotas list --user ann")[0] == {
        "entity": {"client-id": None, "user": "ann"}, "quotas": {"producer_byte_rate": 1024.0}
    }  # fmt: skip
    assert "client-id=default, user=ann" in shell("cluster quotas list")
    shell("cluster quotas unset producer_byte_rate --user ann --client-id default")
    assert len(shell.table("cluster quotas list")) == 1
    shell("cluster quotas set producer_byte_rate=1", 2)
    shell("cluster quotas set producer_byte_rate=fast --user ann", 2)
    shell("cluster quotas set speed=1 --user ann", 1)


def test_users_are_set_listed_and_deleted(shell: Shell) -> None:
    shell("cluster users set ann --password-stdin", stdin=b"secret\n")
    assert shell.table("cluster users list") == [["ann", "SCRAM-SHA-256", "4096"], ["ann", "SCRAM-SHA-512", "4096"]]
    shell("cluster users delete ann --mechanism SCRAM-SHA-256")
    assert shell.rows("cluster users list ann")[0]["credentials"] == [
        {"mechanism": "SCRAM-SHA-512", "iterations": 4096}
    ]
    shell("cluster users set bob --mechanism SCRAM-SHA-512 --password-stdin", stdin=b"secret\n")
    assert shell.table("cluster users list bob") == [["bob", "SCRAM-SHA-512", "4096"]]
    for name in ("ann", "bob"):
        shell(f"cluster users delete {name}")
        shell(f"cluster users list {name}", 1)
    shell("cluster users set ann --password-stdin", 2, stdin=b"\n")


def test_a_password_is_not_asked_for_where_there_is_no_terminal(shell: Shell) -> None:
    shell("cluster users set ann", 2, stdin=b"secret\n")
    assert "there is no terminal to ask for the password; give it by --password-stdin" in shell.error


def test_acls_with_the_words_of_kafka_acls(shell: Shell) -> None:
    shell("cluster acl --add --allow-principal User:ann --consumer --topic orders --group app")
    shell("cluster acl --add --deny-principal User:bob --deny-host 10.0.0.1 --operation DescribeConfigs --topic orders")
    assert len(shell.table("cluster acl --list")) == 4
    assert {row["operation"] for row in shell.rows("cluster acl --list --topic orders --principal User:ann")} == {
        "read", "describe"
    }  # fmt: skip
    shell("cluster acl --add --allow-principal User:eve --producer --topic ord --resource-pattern-type prefixed")
    assert len(shell.rows("cluster acl --list --topic orders --resource-pattern-type match")) == 6
    assert len(shell.rows("cluster acl --remove --allow-principal User:ann --operation read --topic orders")) == 1
    assert len(shell.rows("cluster acl --remove --topic orders --force")) == 2
    assert {row["name"] for row in shell.rows("cluster acl --list")} == {"ord", "app"}
    shell("cluster acl --add --allow-principal User:ann", 2)
    shell("cluster acl --list --add", 2)
    shell("cluster acl --topic orders", 2)
    shell("cluster acl --remove", 2)


@pytest.mark.parametrize("host", ["localhost", "10.0.0.0/8", "broker1.example.com"])
def test_an_acl_for_a_host_that_no_client_has_is_refused(host: str, shell: Shell) -> None:
    """It was added, and matched nothing."""
    rule = "cluster acl --add --deny-principal User:bob --topic orders --deny-host"
    shell(f"{rule} {host}", 2)
    assert f"the host {host!r} is no address, so no client has it; give an IP address, or *" in shell.error
    shell(f"cluster acls add User:bob read topic orders --host {host}", 2)
    shell(rule.replace("deny", "allow") + f" {host}", 2)
    assert shell.rows("cluster acl --list") == []
    for address in ("10.0.0.1", "::1", "*"):
        shell(f"{rule} {address}")
    assert len(shell.rows("cluster acl --list")) == 3
    shell(f"cluster acl --remove --deny-principal User:bob --topic orders --deny-host {host}")


def test_a_removal_of_all_asks_first(shell: Shell) -> None:
    shell("cluster acl --add --allow-principal User:ann --topic orders")
    shell("cluster acl --remove --topic orders", 1, stdin=b"n\n")
    assert len(shell.rows("cluster acl --list")) == 1
    shell("cluster acl --remove --topic orders", stdin=b"y\n")
    assert shell.rows("cluster acl --list") == []
