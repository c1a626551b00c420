"""Every setting of a client does something, and in this folder or the contract suite it is seen doing it.

A test names the settings whose effect it shows by `@pytest.mark.setting(...)`; the last tests hold the table
of settings against these marks, and against the code that reads them. `ignoring.py` ignores each in turn, and finds
those that no test misses.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from producing import values

import logkernel
from logkernel.client.cluster.bootstrap import bootstrap_addresses
from logkernel.client.consumer.base import make_consumer_machine
from logkernel.client.consumer.consumer import Consumer
from logkernel.client.drivers.thread_driver import ThreadDriver
from logkernel.client.producer.base import make_sender
from logkernel.client.producer.producer import Producer
from logkernel.client.settings.consumer import CONSUMER, load_consumer
from logkernel.client.settings.producer import ALIASES, PRODUCER, load_producer
from logkernel.client.settings.table import LONG_MAX
from logkernel.errors import ConfigError, MessageTooLarge
from logkernel.security.client_table import CLIENT_SECURITY

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.setting("enable.metrics.push", "transaction.two.phase.commit.enable")
def test_what_is_not_offered_is_refused() -> None:
    assert values(enable_metrics_push=False)
    for bad in (
        {"enable_metrics_push": True},
        {"transaction_two_phase_commit_enable": True},
        {"ssl_engine_factory_class": "x"},
        {"config_providers": "x"},
    ):
        with pytest.raises(ConfigError):
            values(**bad)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"timeout_ms": 777}, {"request.timeout.ms": 777}),
        ({"metadata_fetch_timeout_ms": 888}, {"max.block.ms": 888}),
        ({"block_on_buffer_full": True}, {"max.block.ms": LONG_MAX}),
        ({"block_on_buffer_full": "false", "max_block_ms": 5}, {"max.block.ms": 5}),
        ({"timeout_ms": 1, "request_timeout_ms": 2}, {"request.timeout.ms": 2}),
    ],
)
def test_names_of_old_are_taken_with_a_warning(given: dict[str, Any], expected: dict[str, Any]) -> None:
    with pytest.warns(DeprecationWarning, match="deprecated"):
        found = values(**given)
    assert {name: found[name] for name in expected} == expected


def test_a_bad_setting_is_refused_with_the_remedy() -> None:
    for bad, text in (
        ({"lingerms": 1}, "did you mean linger.ms"),
        ({"linger_ms": -1}, "at least 0"),
        ({"linger_ms": "soon"}, "Not a number of type LONG"),
        ({"linger_ms": 1.5}, "whole number"),
        ({"linger_ms": True}, "number"),
        ({"acks": 2}, "one of"),
        ({"enable_idempotence": 3}, "true or false"),
    ):
        with pytest.raises(ConfigError, match=text):
            values(**bad)
    assert values(linger_ms="7", enable_idempotence="FALSE")["linger.ms"] == 7


def test_a_record_larger_than_a_request_or_the_pool_is_refused() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        with (
            log.producer(max_request_size=1000) as producer,
            pytest.raises(MessageTooLarge, match=r"max\.request\.size"),
        ):
            producer.send("t", bytes(2000))
        with log.producer(buffer_memory=1000) as producer, pytest.raises(MessageTooLarge, match=r"buffer\.memory"):
            producer.send("t", bytes(2000))


# ---------------------------------------------------------------- the table against tests and code


def marked() -> set[str]:
    """Every name in a mark `setting` of the tests."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if "mark.setting" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setting":
                found |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    return found


OF_SECURITY = {setting.name for setting in CLIENT_SECURITY}
"""Shown by the tests of `ClientSecurity`, which reads them where security.protocol is not PLAINTEXT."""


def test_every_setting_is_shown_by_a_test() -> None:
    names = {setting.name for setting in (*PRODUCER, *CONSUMER)} - OF_SECURITY
    assert names - marked() == set()
    assert marked() - names == set()


class Watched(dict[str, Any]):
    """Settings that know which of them were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


REFUSED = {"enable.metrics.push", "transaction.two.phase.commit.enable"}
"""Of these, the one value that is offered means that there is nothing to do."""


def test_every_setting_of_a_producer_is_read_by_the_code_that_runs() -> None:
    read: set[str] = set()
    codecs = ({"compression_type": name} for name in ("gzip", "lz4", "zstd"))
    with logkernel.open() as log:
        log.create_topic("t")
        address = log.listen()
        for more in ({}, {"transactional_id": "x", "transaction_timeout_ms": 10_000}, *codecs):
            given = Watched(load_producer({"bootstrap_servers": address, **more}))
            driver = ThreadDriver(make_sender(given, bootstrap_addresses(given), log.kernel), given, log.kernel, "tcp")
            with Producer(driver, log.kernel, given) as producer:
                driver.start()
                if "transactional_id" in more:
                    producer.init_transactions()
                    producer.begin_transaction()
                producer.send("t", b"v").result(120)
            read |= given.read
    assert {setting.name for setting in PRODUCER} - OF_SECURITY - read == REFUSED


def test_every_setting_of_a_consumer_is_read_by_the_code_that_runs() -> None:
    read: set[str] = set()
    with logkernel.open(group_initial_rebalance_delay_ms=0) as log:
        log.create_topic("t")
        log.append("t", b"v")
        address = log.listen()
        for more in ({}, {"group_id": "a"}, {"group_id": "b", "group_protocol": "consumer"}):
            wanted = {"bootstrap_servers": address, "auto_offset_reset": "earliest", **more}
            given = Watched(load_consumer(wanted))
            machine = make_consumer_machine(given, bootstrap_addresses(given), log.kernel)
            driver = ThreadDriver(machine, given, log.kernel, "tcp")
            with Consumer(driver, log.kernel, given) as consumer:
                driver.start()
                consumer.subscribe(pattern=re.compile("t"))
                while not consumer.poll(1):
                    pass
            read |= given.read
    assert {setting.name for setting in CONSUMER} - OF_SECURITY - read == REFUSED & {
        setting.name for setting in CONSUMER
    }


def test_every_name_of_old_stands_for_a_setting() -> None:
    assert set(ALIASES.values()) <= {setting.name for setting in PRODUCER}
