"""A broker that asks for TLS and a password, and our clients: let in, refused, and what a stranger sees."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from attrs import frozen
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

import logkernel
from logkernel import aio
from logkernel.cli import main
from logkernel.cli.secure import told
from logkernel.client.admin.access import ScramUpsertion
from logkernel.errors import (
    NetworkException,
    RequestTimedOut,
    SaslAuthenticationFailed,
    SslAuthenticationException,
    TopicAuthorizationFailed,
    UnsupportedSaslMechanism,
)
from logkernel.security.development import Development, obtain

StartBroker = Callable[..., Any]
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
WAIT_S = 60


@frozen
class Secure:
    """A broker of `--secure`, and what its first user sets."""

    broker: Any
    settings: dict[str, str]
    folder: Path

    @property
    def address(self) -> str:
        return str(self.broker.bootstrap)

    def connect(self, **others: str) -> Any:
        return logkernel.connect(self.address, **{**self.settings, **others})


@pytest.fixture
def secure(start_broker: StartBroker) -> Secure:
    return opened(start_broker("--secure", "--set", "connection.failed.authentication.delay.ms=1"))


def opened(broker: Any) -> Secure:
    folder = broker.data / "security"
    lines = (folder / "client.properties").read_text().splitlines()
    return Secure(broker, dict(line.split("=", 1) for line in lines), folder)


@pytest.fixture
def plain(start_broker: StartBroker) -> Secure:
    """A broker of SASL_PLAINTEXT with users of PLAIN, and SCRAM."""
    broker = start_broker(
        "--set", "listener.security.protocol.map=OUT:SASL_PLAINTEXT",
        "--set", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "--set", "connection.failed.authentication.delay.ms=1",
        "--set", f'listener.name.out.plain.sasl.jaas.config={PLAIN_LOGIN} user_ann="wonder" user_bob="build";',
        listen="OUT://127.0.0.1:0",
    )  # fmt: skip
    return Secure(broker, login("PLAIN", "ann", "wonder"), broker.data)


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def write_and_read(log: Any, topic: str) -> list[bytes]:
    with log.producer() as producer:
        producer.send(topic, b"one").result(WAIT_S)
        producer.send(topic, b"two").result(WAIT_S)
    with log.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        found: list[bytes] = []
        while len(found) < 2:
            records = consumer.poll(WAIT_S)
            assert records, "nothing came"
            found += [record.value for record in records]
    return found


def test_the_first_user_writes_and_reads(secure: Secure) -> None:
    with secure.connect() as log:
        assert write_and_read(log, "orders") == [b"one", b"two"]


def test_large_records_pass_through_tls(secure: Secure) -> None:
    values = [os.urandom(300_000) for _ in range(8)]
    with secure.connect() as log:
        with log.producer(max_request_size=4 << 20) as producer:
            for value in values:
                producer.send("large", value).result(WAIT_S)
        with log.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("large", 0)])
            found: list[bytes] = []
            while len(found) < len(values):
                found += [record.value for record in consumer.poll(WAIT_S)]
    assert found == values


def test_the_first_user_writes_on_a_loop(secure: Secure) -> None:
    async def go() -> int:
        async with aio.connect(secure.address, **secure.settings) as log, log.producer() as producer:
            metadata = await (await producer.send("orders", b"x" * 200_000))
            return int(metadata.offset)

    assert asyncio.run(go()) == 0


def test_a_user_that_the_command_line_adds_may_do_what_an_acl_allows(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCRAM-SHA-256, by which the command added users, was not what client.properties has."""
    given = ["-b", secure.address, "--command-config", str(secure.folder / "client.properties")]
    monkeypatch.setattr("sys.stdin", io.StringIO("her secret\n"))
    assert main(["cluster", "users", "set", "ann", "--password-stdin", *given]) == 0
    assert main(["topic", "create", "orders", *given]) == 0
    allow = ["--allow-principal", "User:ann", "--producer", "--topic", "orders"]
    assert main(["cluster", "acl", "--add", *allow, *given]) == 0
    ann = {"sasl.jaas.config": login_line("ann", "her secret")}
    with secure.connect(**ann) as log, log.producer() as producer:
        assert producer.send("orders", b"x").result(WAIT_S).offset == 0
        with pytest.raises(TopicAuthorizationFailed):
            producer.send("payments", b"x").result(WAIT_S)


def test_describing_a_topic_says_which_acl_is_missing(
    secure: Secure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A producer's ACLs allow DESCRIBE, but not DESCRIBE_CONFIGS, which the command asks as well."""
    given = ["-b", secure.address, "--command-config", str(secure.folder / "client.properties")]
    monkeypatch.setattr("sys.stdin", io.StringIO("her secret\n"))
    assert main(["cluster", "users", "set", "ann", "--password-stdin", *given]) == 0
    assert main(["topic", "create", "orders", *given]) == 0
    assert (
        main(["cluster", "acl", "--add", "--allow-principal", "User:ann", "--producer", "--topic", "orders", *given])
        == 0
    )
    capsys.readouterr()
    assert (
        main(["topic", "describe", "orders", *given, "-X", f"sasl.jaas.config={login_line('ann', 'her secret')}"]) == 1
    )
    said = capsys.readouterr().err
    assert "--operation describe-configs --topic orders" in said


def login_line(user: str, password: str) -> str:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return f'{login} username="{user}" password="{password}";'


def test_users_and_keys_survive_a_restart(secure: Secure) -> None:
    before = (secure.folder / "broker.pem").read_bytes()
    secure.broker.restart()
    assert (secure.folder / "broker.pem").read_bytes() == before
    with secure.connect() as log:
        assert write_and_read(log, "orders") == [b"one", b"two"]


def test_the_folder_of_the_keys_is_removed_to_have_others(secure: Secure) -> None:
    """The docs say so. The broker kept the first user's password of before, so nobody could log in."""
    secure.broker.terminate()
    shutil.rmtree(secure.folder)
    secure.broker.restart()
    anew = opened(secure.broker)
    assert anew.settings["sasl.jaas.config"] != secure.settings["sasl.jaas.config"]
    with anew.connect() as log:
        assert write_and_read(log, "orders") == [b"one", b"two"]


def test_the_first_user_keeps_a_password_that_was_changed(secure: Secure) -> None:
    with secure.connect() as log, log.admin() as admin:
        admin.alter_user_scram_credentials(ScramUpsertion("admin", "another", "SCRAM-SHA-512", 4096))
    secure.broker.restart()
    with secure.connect(**{"sasl.jaas.config": login_line("admin", "another")}) as log:
        assert write_and_read(log, "orders") == [b"one", b"two"]


def test_the_command_that_is_shown_reaches_the_broker() -> None:
    """Pasted, it asked at 127.0.0.1:9092, wherever the broker listened."""
    made = Development(Path("ca"), Path("key"), Path("client.properties"), "admin", "")
    asked = [told(made, host, port) for host, port in [("127.0.0.1", 9092), ("::1", 19092), ("", 9093), ("h", 0)]]
    assert [text.partition("topic list")[2].partition(" --command-config")[0] for text in asked] == [
        "", " -b [::1]:19092", " -b 127.0.0.1:9093", " -b HOST:PORT",
    ]  # fmt: skip


def test_keys_and_passwords_can_be_read_by_their_owner_only(secure: Secure) -> None:
    for name in ("broker.pem", "client.properties"):
        assert stat.S_IMODE((secure.folder / name).stat().st_mode) == 0o600, name


def test_no_secret_is_told(secure: Secure, capfd: pytest.CaptureFixture[str]) -> None:
    (password,) = re.findall(r'password="([^"]+)"', secure.settings["sasl.jaas.config"])
    key = (secure.folder / "broker.pem").read_text().splitlines()[1]
    with secure.connect() as log, log.admin() as admin:
        told = repr((log, admin, admin.describe_configs(("broker", "1"))))
    assert main(["cluster", "config", "show", "broker", "1", "-b", secure.address]) != 0
    told += "".join(capfd.readouterr()) + secure.broker.log()
    assert password not in told
    assert key not in told


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"sasl.jaas.config": "", "sasl.username": "admin", "sasl.password": "no"}, SaslAuthenticationFailed, "admin"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN_LOGIN} username="a" password="b";'},
         UnsupportedSaslMechanism, "SCRAM-SHA-512"),
        ({"ssl.truststore.location": "", "ssl.truststore.type": "PEM"}, SslAuthenticationException, "trust"),
    ],
)  # fmt: skip
def test_who_is_not_let_in_is_told_at_once(
    secure: Secure, change: dict[str, str], error: type[Exception], said: str
) -> None:
    settings = {name: value for name, value in {**secure.settings, **change}.items() if value}
    with (
        pytest.raises(error, match=rf"{secure.address}.*|{said}"),
        logkernel.connect(secure.address, **settings) as log,
        log.producer() as producer,
    ):
        producer.send("orders", b"x").result(WAIT_S)


def test_a_client_in_plain_text_is_refused(secure: Secure) -> None:
    while "the client does not speak TLS; set its security.protocol" not in secure.broker.log():
        with (
            pytest.raises((NetworkException, RequestTimedOut)),
            logkernel.connect(secure.address) as log,
            log.admin(default_api_timeout_ms=1000, request_timeout_ms=500) as admin,
        ):
            admin.list_topics()


def test_a_password_that_is_wrong_is_not_told_from_a_user_that_is_not(plain: Secure) -> None:
    texts = []
    for user in ("ann", "nobody"):
        with (
            pytest.raises(SaslAuthenticationFailed) as caught,
            logkernel.connect(plain.address, **login("PLAIN", user, "guess")) as log,
            log.admin() as admin,
        ):
            admin.list_topics()
        texts.append(str(caught.value))
        assert f"check both (user {user!r})" in plain.broker.log()
    assert texts[0] == texts[1]


def test_a_user_that_is_added_can_log_in_until_it_is_deleted(plain: Secure) -> None:
    with logkernel.connect(plain.address, **plain.settings) as log, log.admin() as admin:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            settings = login(mechanism, "carl", "pass word")
            with pytest.raises(SaslAuthenticationFailed), logkernel.connect(plain.address, **settings) as other:
                other.admin().list_topics()
            admin.alter_user_scram_credentials(ScramUpsertion("carl", "pass word", mechanism, 4096))
            with logkernel.connect(plain.address, **settings) as other:
                assert write_and_read(other, mechanism) == [b"one", b"two"]


def test_logins_that_fail_again_are_counted(plain: Secure) -> None:
    """A client that connects again and again with a wrong password wrote a line for each."""
    for _ in range(3):
        with (
            pytest.raises(SaslAuthenticationFailed),
            logkernel.connect(plain.address, **login("PLAIN", "ann", "guess")) as log,
            log.admin() as admin,
        ):
            admin.list_topics()
    assert plain.broker.log().count("authentication failed: ") == 1
    plain.broker.terminate()
    told = plain.broker.log().splitlines()
    (counted,) = (line for line in told if "authentication failed: host=" in line)
    assert " host=127.0.0.1 listener=OUT mechanism=PLAIN: invalid user" in counted
    assert re.search(r' \(this came \d+ times? more before the broker stopped\)"?$', counted)


def test_the_log_tells_who_has_no_password_for_a_mechanism(plain: Secure) -> None:
    """An operator saw only that a user name or password was wrong, where a user had a password for the other one."""
    with logkernel.connect(plain.address, **plain.settings) as log, log.admin() as admin:
        admin.alter_user_scram_credentials(ScramUpsertion("carl", "pass word", "SCRAM-SHA-256", 4096))
    given = {"SCRAM-SHA-512": "pass word", "SCRAM-SHA-256": "guess"}
    for mechanism, password in given.items():
        with (
            pytest.raises(SaslAuthenticationFailed) as caught,
            logkernel.connect(plain.address, **login(mechanism, "carl", password)) as log,
            log.admin() as admin,
        ):
            admin.list_topics()
        assert "carl" not in str(caught.value)
    assert "check both (there is no SCRAM-SHA-512 password of user 'carl')" in plain.broker.log()
    assert "check both (wrong password of 'User:carl')" in plain.broker.log()


def test_a_listener_that_lets_in_nobody_or_anybody_is_warned_of(start_broker: StartBroker, tmp_path: Path) -> None:
    ours = trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem
    ours.write_to_path(str(tmp_path / "broker.pem"))
    broker = start_broker(
        "--set", "listener.security.protocol.map=IN:SSL,OUT:SASL_PLAINTEXT",
        "--set", "ssl.keystore.type=PEM", "--set", f"ssl.keystore.location={tmp_path / 'broker.pem'}",
        "--set", "listener.name.in.ssl.client.auth=required",
        "--set", "sasl.enabled.mechanisms=PLAIN",
        "--set", f'listener.name.out.plain.sasl.jaas.config={PLAIN_LOGIN} username="ann" password="pl4nted";',
        listen="IN://127.0.0.1:0,OUT://127.0.0.1:0",
    )  # fmt: skip
    assert "listener IN: ssl.client.auth=required without a truststore lets in who has a certificate" in broker.log()
    nobody = "listener OUT: nobody can log in by PLAIN, as listener.name.out.plain.sasl.jaas.config has no users"
    assert nobody in broker.log()
    assert "pl4nted" not in broker.log()


def test_a_client_that_logs_in_where_nobody_has_to_is_told_what_to_set(start_broker: StartBroker) -> None:
    broker = start_broker()
    with (
        pytest.raises(UnsupportedSaslMechanism, match="this listener of the broker has no SASL; use the port of one"),
        logkernel.connect(broker.bootstrap, **login("PLAIN", "ann", "wonder")) as log,
        log.admin() as admin,
    ):
        admin.list_topics()


def test_a_producer_goes_on_while_its_session_is_renewed(start_broker: StartBroker) -> None:
    broker = start_broker(
        "--set", "sasl.enabled.mechanisms=PLAIN",
        "--set", "connections.max.reauth.ms=50",
        "--set", f'listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN_LOGIN} user_ann="wonder";',
        listen="SASL_PLAINTEXT://127.0.0.1:0",
    )  # fmt: skip
    with logkernel.connect(broker.bootstrap, **login("PLAIN", "ann", "wonder")) as log, log.producer() as producer:
        offsets = [producer.send("orders", b"%d" % number).result(WAIT_S).offset for number in range(300)]
    assert offsets == list(range(300))


def test_a_certificate_that_is_renewed_is_shown_without_a_restart(secure: Secure, tmp_path: Path) -> None:
    host, port = secure.broker.address
    before = ssl.get_server_certificate((host, port))
    other = obtain(tmp_path / "other")
    shutil.copy(other.broker, secure.folder / "new.pem")
    os.replace(secure.folder / "new.pem", secure.folder / "broker.pem")
    deadline_s = time.monotonic() + WAIT_S
    while (shown := ssl.get_server_certificate((host, port))) == before and time.monotonic() < deadline_s:
        pass
    assert shown.strip() in other.broker.read_text()


def test_a_client_that_says_nothing_is_disconnected(start_broker: StartBroker) -> None:
    broker = start_broker(
        "--secure", "--set", "logkernel.authentication.timeout.ms=50", "--set", "connections.max.idle.ms=400"
    )
    silent = [socket.create_connection(broker.address, timeout=WAIT_S) for _ in range(50)]
    try:
        assert [one.recv(1) for one in silent] == [b""] * 50
    finally:
        for one in silent:
            one.close()
    assert "it did not authenticate within 50 ms" in broker.log()


def test_a_clients_certificate_says_who_it_is(start_broker: StartBroker, tmp_path: Path) -> None:
    authority = trustme.CA()
    broker_key, client_key = tmp_path / "broker.pem", tmp_path / "client.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(broker_key))
    authority.issue_cert("ann@example.com", common_name="ann").private_key_and_cert_chain_pem.write_to_path(
        str(client_key)
    )
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "ca.pem")}
    settings = {
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(broker_key), **trust, "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([a-z]+).*$/$1/,DEFAULT",
        "authorizer.class.name": "standard", "super.users": "User:ann",
    }  # fmt: skip
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    broker = start_broker(*given, listen="SSL://127.0.0.1:0")
    ours = {"security.protocol": "SSL", **trust}
    known = {**ours, "ssl.keystore.type": "PEM", "ssl.keystore.location": str(client_key)}
    with logkernel.connect(broker.bootstrap, **known) as log:
        assert write_and_read(log, "orders") == [b"one", b"two"]
    with (
        pytest.raises((NetworkException, RequestTimedOut, SslAuthenticationException)),
        logkernel.connect(broker.bootstrap, **ours) as log,
        log.admin(default_api_timeout_ms=2000, request_timeout_ms=1000) as admin,
    ):
        admin.list_topics()


UNSECURED = "listener.name.out.oauthbearer.sasl.server.callback.handler.class"


@pytest.fixture
def tokens(start_broker: StartBroker, tmp_path: Path) -> Callable[[str], Any]:
    """Starts a broker that takes tokens by one setting."""

    def start(setting: str) -> Any:
        return start_broker(
            "--set", "listener.security.protocol.map=OUT:SASL_PLAINTEXT", "--set", setting,
            "--set", "sasl.enabled.mechanisms=OAUTHBEARER", "--set", "connection.failed.authentication.delay.ms=1",
            listen="OUT://127.0.0.1:0",
        )  # fmt: skip

    return start


def with_token(user: str) -> dict[str, str]:
    login = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{login} unsecuredLoginStringClaim_sub="{user}";',
    }


def test_an_unsecured_token_is_taken_where_a_test_wants_it(tokens: Callable[[str], Any]) -> None:
    broker = tokens(f"{UNSECURED}=org.apache.kafka.x.OAuthBearerUnsecuredValidatorCallbackHandler")
    with logkernel.connect(broker.bootstrap, **with_token("ann")) as log:
        assert write_and_read(log, "orders") == [b"one", b"two"]


def test_an_unsecured_token_is_refused_where_keys_sign_tokens(tokens: Callable[[str], Any], tmp_path: Path) -> None:
    keys = tmp_path / "jwks.json"
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    keys.write_text(json.dumps({"keys": [ECAlgorithm.to_jwk(public, as_dict=True)]}))
    broker = tokens(f"sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}")
    with (
        pytest.raises(SaslAuthenticationFailed),
        logkernel.connect(broker.bootstrap, **with_token("ann")) as log,
        log.admin() as admin,
    ):
        admin.list_topics()


NO_USERS = "listener.name.sasl_plaintext.plain.sasl.jaas.config: PLAIN has no users; give"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["listeners=SASL_PLAINTEXT://127.0.0.1:0"],
            "GSSAPI, Kafka's default mechanism, has no keytab; give com.sun",
        ),
        (["listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=PLAIN"], NO_USERS),
        (["listeners=OUT://127.0.0.1:0"], "add OUT:PROTOCOL to listener.security.protocol.map"),
        (["listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=OAUTHBEARER"], "OAUTHBEARER has no keys"),
        (["listeners=SSL://127.0.0.1:0"], "ssl.keystore.location: the listener speaks TLS and has no key; name a file"),
        (["listeners=SSL://127.0.0.1:0", "ssl.keystore.location=/nowhere.pem"], "/nowhere.pem"),
    ],
)
def test_a_listener_that_cannot_be_secure_ends_the_start(settings: list[str], said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "logkernel", "serve", "--data", str(tmp_path / "data")]
    given = [word for setting in settings for word in ("--set", setting)]
    ended = subprocess.run([*command, *given], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2
    assert said in ended.stderr
