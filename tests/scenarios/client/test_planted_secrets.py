"""Secrets are planted in every setting that takes one; none is found in what is shown."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import logkernel
from logkernel.client.settings.admin import load_admin
from logkernel.client.settings.consumer import load_consumer
from logkernel.client.settings.producer import load_producer
from logkernel.errors import LogkernelError, SaslAuthenticationFailed
from logkernel.plugins.transport.tcp.transport import TcpTransport
from logkernel.security.client_table import CLIENT_SECURITY, SYNONYMS
from logkernel.security.settings import is_secret
from logkernel.table import open_source

SECRET = "hunter2-planted"
NAMES = sorted(name for name in (*(setting.name for setting in CLIENT_SECURITY), *SYNONYMS) if is_secret(name))
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PLANTED = {
    "as it is": SECRET,
    "of a login": f'{LOGIN} username="a" password="{SECRET}";',
    "of a login that does not end": f'{LOGIN} username="a" password="{SECRET}',
    "of a login without its class": f'username="a" password="{SECRET}";',
    "in PEM": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
}
BASE = {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b", "ssl.truststore.type": "PEM"}


def ways(settings: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    given = {name.replace(".", "_"): value for name, value in settings.items()}

    def made(kind: str) -> Any:
        with logkernel.connect("h:1", **given) as log:
            client = getattr(log, kind)()
            shown.append(f"{log!r} {client!r}")
            {"producer": lambda: client.partitions_for("t"), "consumer": lambda: client.partitions_for("t"),
             "admin": lambda: client.list_topics()}[kind]()  # fmt: skip

    def source() -> Any:
        opened = open_source(bootstrap="h:1", settings=settings)
        shown.append(repr(opened))
        opened.topics()

    shown: list[str] = []
    return {
        "producer": lambda: made("producer"),
        "consumer": lambda: made("consumer"),
        "admin": lambda: made("admin"),
        "table": source,
        "settings": lambda: [load_admin(settings), load_consumer(settings), load_producer(settings)],
        "shown": lambda: shown,
    }


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT", "PLAINTEXT"])
@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_shown(
    name: str, kind: str, protocol: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any) -> Any:
        raise SaslAuthenticationFailed("invalid credentials; check user and password")

    monkeypatch.setattr(TcpTransport, "connect", refused)
    caplog.set_level(logging.DEBUG)
    told = []
    for way in ways({**BASE, "security.protocol": protocol, name: PLANTED[kind]}).values():
        try:
            told.append(repr(way()))
        except LogkernelError as error:
            told += traceback.format_exception(error)
            told.append(repr(error))
    assert told
    assert SECRET not in "".join(told)
    assert SECRET not in caplog.text
