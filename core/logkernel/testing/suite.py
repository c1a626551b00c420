"""A broker for a suite that was not written for it: what the ini options `kafka_env`, `kafka_listen` and
`kafka_containers` of the pytest plugin do. Nothing in the suite changes.

It starts before the suite's conftest files are imported, since these may read the address. With xdist the process that
hands the tests out has it; the workers inherit the variables.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from logkernel.errors import CannotListen, ConfigError, LogkernelError
from logkernel.testing.container import LogkernelContainer
from logkernel.testing.kafka.kafka import LISTEN, Kafka

CONTAINERS: Final = (
    "testcontainers.kafka", "testcontainers.kafka._redpanda",
    "testcontainers.community.kafka", "testcontainers.community.kafka._redpanda",
)  # fmt: skip
"""Where releases of testcontainers have the two classes."""
PLACES: Final = re.compile(r"\{(?:user|password|ca)?\}")
CLASSES: Final = ("KafkaContainer", "RedpandaContainer")


def serve(variables: Iterable[str], listen: str, options: Mapping[str, Any]) -> Callable[[], None]:
    """Start a broker, and set each of `variables`, "NAME" or "NAME=TEXT", to its address: {} in the text stands for it,
    {user} and {password} for its first user's, {ca} for the file of its CA. Returns what ends the broker and restores
    the environment. Raises `ConfigError` for a broker that cannot start."""
    pairs = [(name.strip(), text.strip() or "{}") for name, _, text in (line.partition("=") for line in variables)]
    for name, text in pairs:
        if not name or not PLACES.search(text):
            line = f"{name}={text}"
            raise ConfigError(f"kafka_env: {line!r} is not of the form NAME or NAME=TEXT with {{}}; correct that line")
    try:
        kafka = Kafka(listen=listen or LISTEN, **options)
    except CannotListen as error:
        raise ConfigError(f"kafka_listen: {error}") from None
    except LogkernelError as error:
        raise ConfigError(f"the broker of this suite cannot start: {error}") from None
    before = {name: os.environ.get(name) for name, _ in pairs}
    values = {"{}": kafka.bootstrap_servers, **_login(kafka)}
    os.environ.update({name: PLACES.sub(lambda found: values[found[0]], text) for name, text in pairs})

    def end() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        kafka.close()

    return end


def _login(kafka: Kafka) -> dict[str, str]:
    """What stands for a place in the text of a variable; "" for what this broker does not ask for."""
    found = kafka.client_settings(spelling="librdkafka")
    names = {"{user}": "sasl.username", "{password}": "sasl.password", "{ca}": "ssl.ca.location"}
    return {place: found.get(name, "") for place, name in names.items()}


def replace_containers() -> Callable[[], None]:
    """Have testcontainers' classes for Kafka and Redpanda be `LogkernelContainer`. Returns what puts them back. Raises
    `ConfigError` where testcontainers is not installed."""
    found: list[tuple[Any, str, Any]] = []
    for name in CONTAINERS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                module = sys.modules.get(name) or import_module(name)
        except ModuleNotFoundError:
            continue
        found += [(module, each, getattr(module, each)) for each in CLASSES if hasattr(module, each)]
    if not found:
        raise ConfigError("kafka_containers: testcontainers is not installed here; install it, or remove the option")
    for module, name, _ in found:
        setattr(module, name, LogkernelContainer)

    def put_back() -> None:
        for module, name, value in found:
            setattr(module, name, value)

    return put_back
