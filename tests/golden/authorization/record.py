"""Records what Apache Kafka answers to the cases: python tests/golden/authorization/record.py > kafka-4.3.1.txt

One KRaft node with StandardAuthorizer; each user logs in by PLAIN over SASL_PLAINTEXT.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE)]

import apache_kafka  # noqa: E402
from authorization_cases import KEY, ROOT, USERS, set_up, table  # noqa: E402
from server import free_port  # noqa: E402

from logkernel.plugins.transport.tcp.channel import TcpChannel  # noqa: E402
from logkernel.requests import access, transactions  # noqa: E402

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def settings(port: int, client_port: int, controller_port: int, logins: dict[str, str]) -> dict[str, str]:
    known = " ".join(f'user_{login}="secret"' for login in logins.values())
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CLIENT://127.0.0.1:{client_port},"
        f"CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},CLIENT://127.0.0.1:{client_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": f"{LOGIN} {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{logins[ROOT]}",
        "delegation.token.secret.key": KEY.decode(),
        "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
        "group.consumer.session.timeout.ms": "60000",
        "group.share.session.timeout.ms": "60000",
    }


class Users:
    """A connection for each user, logged in."""

    def __init__(self, port: int, logins: dict[str, str]) -> None:
        self._port = port
        self._logins = logins
        self._channels: dict[str, TcpChannel] = {}

    def ask(self, user: str, request: Any) -> Any:
        if user not in self._channels:
            self._channels[user] = self._connected(self._logins[user])
        if isinstance(request, transactions.AddPartitionsToTxnRequest):
            return self._add(user, request)
        return self._channels[user].call(_named(self._logins, request))

    def _connected(self, login: str) -> TcpChannel:
        channel = TcpChannel("127.0.0.1", self._port, {})
        assert channel.call(access.SaslHandshakeRequest("PLAIN")).error_code == 0
        answer = channel.call(access.SaslAuthenticateRequest(f"\0{login}\0secret".encode()))
        assert answer.error_code == 0, answer
        return channel

    def _add(self, user: str, request: transactions.AddPartitionsToTxnRequest) -> Any:
        """As clients ask: by version 3."""
        (one,) = request.transactions
        asked = transactions.AddPartitionsToTxnRequest(
            [], one.transactional_id, one.producer_id, one.producer_epoch, one.topics
        )
        response = self._channels[user].call(asked)
        response.results_by_transaction[0].transactional_id = one.transactional_id
        response.results_by_topic_v3_and_below = []
        return response

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()


def _named(logins: dict[str, str], request: Any) -> Any:
    """Principals by their logins: a JAAS entry takes no `+`."""
    if isinstance(request, access.CreateAclsRequest):
        for row in request.creations:
            row.principal = f"User:{logins[row.principal.removeprefix('User:')]}"
    return request


def retried(step: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not step():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)


def main() -> None:
    logins = {user: f"u{number}" for number, user in enumerate((ROOT, *USERS))}
    with tempfile.TemporaryDirectory() as scratch:
        client_port = free_port()
        server = apache_kafka.KafkaServer(Path(scratch))
        server.settings = settings(server.port, client_port, server.controller_port, logins)
        server.prepare()
        server.start()
        users = Users(client_port, logins)
        try:
            names = set_up(users.ask, retried)
            for line in table(users.ask, names):
                print(line)
        finally:
            with contextlib.suppress(Exception):
                users.close()
            server.stop()


if __name__ == "__main__":
    main()
