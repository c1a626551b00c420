"""What commands say to a user who may do nothing: the resource, and the command that allows it, which then does."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.cli import main
from logkernel.cli.acl_words import OPERATIONS as WORDS
from logkernel.client.admin.topics import NewTopic
from logkernel.client.cluster.permissions import OPERATIONS, OPTIONS
from logkernel.errors import GroupAuthorizationFailed, TopicAuthorizationFailed, TransactionalIdAuthorizationFailed
from logkernel.testing import Kafka

SETTINGS = {
    "authorizer.class.name": "standard",
    "super.users": "User:root",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
COMMAND = re.compile(r"logkernel (cluster acl --add --allow-principal User:NAME --operation (\S+) --(\S+)(?: (\S+))?)$")
REFUSED = {
    "topic create new": "create topic new",
    "topic describe orders": "describe topic orders",
    "topic delete orders": "delete topic orders",
    "topic alter orders -p 4": "alter topic orders",
    "topic alter orders -c retention.ms=1000": "alter-configs topic orders",
    "topic trim orders:0 --before 0": "delete topic orders",
    "produce orders": "write topic orders",
    "consume orders -e": "read topic orders",
    "consume orders -g readers -e": "read topic orders",
    "group describe g": "describe group g",
    "group delete g": "delete group g",
    "group reset-offsets g -t orders:0 --to-earliest --execute": "describe group g",
    "group delete-offsets g -t orders:0": "delete group g",
    "group remove-members g --all": "describe group g",
    "config list topic": "describe-configs cluster",
    "config list topic orders": "describe-configs topic orders",
    "config set topic orders retention.ms=1": "alter-configs topic orders",
    "config list broker 1": "describe-configs cluster",
    "config set broker 1 log.cleaner.threads=2": "alter-configs cluster",
    "config list group g": "describe-configs group g",
    "config set group g consumer.session.timeout.ms=50000": "alter-configs group g",
    "offsets orders:0": "describe topic orders",
    "txn describe tx": "describe transactional-id tx",
    "txn producers orders:0": "read topic orders",
    "txn fence tx": "write transactional-id tx",
    "cluster check": "describe cluster",
    "cluster log-dirs": "describe cluster",
    "cluster quorum": "describe cluster",
    "cluster elect orders:0": "alter cluster",
    "cluster reassignments": "describe cluster",
    "cluster acl --list": "describe cluster",
    "cluster acl --add --allow-principal User:x --operation Read --topic orders": "alter cluster",
    "cluster quotas list": "describe-configs cluster",
    "cluster quotas set --user x consumer_byte_rate=1": "alter-configs cluster",
    "cluster users list": "describe cluster",
}
"""Command → operation, option and name of the ACL that it names first."""
EMPTY = {
    "topic list": (0, "topic"),
    "topic describe": (0, "topic"),
    "group list": (0, "group"),
    "group describe": (0, "group"),
    "txn list": (0, "transactional-id"),
    "txn find-hanging": (0, "topic"),
    "cluster info": (0, "topic"),
    "cluster status": (1, "topic"),
    "cluster status --json": (1, "topic"),
}
"""Command that is answered without what the user may not see → exit code, what there is none of."""


class Users:
    """Run commands as root, and as a user without rights."""

    def __init__(self, kafka: Kafka, folder: Path, capture: Any, patch: pytest.MonkeyPatch) -> None:
        self._kafka = kafka
        self._folder = folder
        self._capture = capture
        self._patch = patch
        patch.setenv("LOGKERNEL_BOOTSTRAP", kafka.bootstrap_servers)

    def settings(self, user: str) -> dict[str, str]:
        found = self._kafka.client_settings(user=user)
        return {name: value for name, value in found.items() if name != "bootstrap.servers"}

    def __call__(self, user: str, line: str) -> tuple[int, str]:
        """The exit code, and what was said."""
        file = self._folder / f"{user}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.settings(user).items()))
        self._patch.setenv("LOGKERNEL_COMMAND_CONFIG", str(file))
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"record\n")))
        self._capture.readouterr()
        code = main(shlex.split(line))
        out, error = self._capture.readouterr()
        return code, out + error

    def named(self, user: str, line: str) -> tuple[str, str]:
        """The ACL that a refused command names, as in `REFUSED`, and the command that adds it."""
        code, said = self(user, line)
        found = COMMAND.search(said.strip())
        assert code == 1, said
        assert found, said
        return " ".join(filter(None, found.groups()[1:])), found[1].replace("User:NAME", f"User:{user}")


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    users = {"root": "r00t", "nobody": "n0body"}
    with Kafka(security_protocol="SASL_PLAINTEXT", users=users, settings=SETTINGS) as opened:
        root = {name.replace(".", "_"): value for name, value in opened.client_settings(user="root").items()}
        with logkernel.connect(root.pop("bootstrap_servers"), **root) as log, log.admin() as admin:
            admin.create_topics(NewTopic("orders", 1))
            with log.consumer(group="g", auto_offset_reset="earliest") as consumer:
                consumer.assign([("orders", 0)])
                consumer.commit({("orders", 0): 0})
        yield opened


@pytest.fixture
def users(kafka: Kafka, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Users:
    return Users(kafka, tmp_path, capfd, monkeypatch)


def test_a_topic_of_python_names_the_acl_as_commands_do(users: Users, kafka: Kafka) -> None:
    """It said "Authorization failed." alone."""
    nobody = {name.replace(".", "_"): value for name, value in users.settings("nobody").items()}
    with logkernel.connect(kafka.bootstrap_servers, **nobody) as log:
        with pytest.raises(TopicAuthorizationFailed, match=r"--operation create --topic new$"):
            log.create_topic("new")
        with pytest.raises(TopicAuthorizationFailed, match=r"--operation delete --topic orders$"):
            log.delete_topic("orders")


@pytest.mark.parametrize("line", REFUSED)
def test_a_refused_command_names_the_acl_which_allows_it(line: str, users: Users) -> None:
    wanted, allow = users.named("nobody", line)
    assert wanted == REFUSED[line]
    assert users("root", allow)[0] == 0
    code, said = users("nobody", line)
    again = COMMAND.search(said.strip())
    assert not code or again is None or again[1].replace("User:NAME", "User:nobody") != allow, "it allows nothing"


@pytest.mark.parametrize("line", EMPTY)
def test_a_listing_that_is_empty_says_that_others_may_see_more(line: str, users: Users) -> None:
    code, kind = EMPTY[line]
    found, said = users("nobody", line)
    assert found == code
    text = f"there is no {kind.replace('-', ' ')} that this user may describe; for others, ask for an ACL: logkernel"
    assert f"{text} cluster acl --add --allow-principal User:NAME --operation describe --{kind} '*'" in said
    assert "that this user may describe" not in users("root", line)[1], "who may see everything sees that there is none"


def test_where_nobody_is_asked_an_empty_listing_is_just_empty(capfd: pytest.CaptureFixture[str]) -> None:
    with Kafka() as kafka:
        assert main(["cluster", "status", "-b", kafka.bootstrap_servers]) == 0
    out, error = capfd.readouterr()
    assert "0 partitions" in out
    assert "may describe" not in out + error


def test_a_user_who_may_describe_every_topic_sees_that_there_is_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code was 1, as where topics are hidden, and the text told to ask for an ACL that the user has."""
    accounts = {"root": "r00t", "nobody": "n0body"}
    with Kafka(security_protocol="SASL_PLAINTEXT", users=accounts, settings=SETTINGS) as empty:
        users = Users(empty, tmp_path, capfd, monkeypatch)
        assert users("nobody", "cluster status")[0] == 1
        allow = "cluster acl --add --allow-principal User:nobody --operation describe --topic '*'"
        assert users("root", allow)[0] == 0
        for line in ("cluster status", "cluster status --json", "topic list", "cluster info"):
            code, said = users("nobody", line)
            assert (code, "ask for an ACL" in said) == (0, False), said


def test_each_operation_is_one_of_its_resource() -> None:
    of_option = {"user-principal": "user"}
    assert {of_option.get(kind, kind) for kind in OPTIONS.values()} <= set(WORDS)
    for needed in OPERATIONS.values():
        for kind, operation in needed.items():
            assert operation in WORDS[of_option.get(kind, kind)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_a_consumer_may_not_join_is_named(protocol: str, users: Users, kafka: Kafka) -> None:
    allow = "cluster acl --add --allow-principal User:nobody --operation read"
    assert users("root", f"{allow} --topic orders")[0] == 0
    login = {name.replace(".", "_"): value for name, value in users.settings("nobody").items()}
    with (
        logkernel.connect(kafka.bootstrap_servers, **login) as log,
        log.consumer("orders", group="the readers", group_protocol=protocol) as consumer,
    ):
        with pytest.raises(GroupAuthorizationFailed) as raised:
            consumer.poll(60)
        assert str(raised.value) == (
            "the readers: not authorized to access the group; ask for an ACL: logkernel cluster acl --add"
            " --allow-principal User:NAME --operation read --group 'the readers'"
        )
        with pytest.raises(GroupAuthorizationFailed, match=r"the readers: not authorized .* --operation read --group"):
            consumer.commit({("orders", 0): 1})


def test_what_a_transaction_may_not_do_is_named(users: Users, kafka: Kafka) -> None:
    login = {name.replace(".", "_"): value for name, value in users.settings("nobody").items()}
    with (
        logkernel.connect(kafka.bootstrap_servers, **login) as log,
        log.producer(transactional_id="payments") as producer,
        pytest.raises(
            TransactionalIdAuthorizationFailed, match=r"payments: .* --operation write --transactional-id pay"
        ),
    ):
        producer.init_transactions()
