"""What `logkernel serve --secure` adds to a broker: a certificate of its own authority, a listener that asks who a
client is, the rules of Kafka's authorizer, and a first user."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from logkernel.broker.first_users import add_users
from logkernel.config.listeners import address, parse_listeners
from logkernel.config.sources import RawSetting
from logkernel.errors import ConfigError
from logkernel.security.development import MECHANISM, Development, obtain

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

DEFAULT_SERVER: Final = ("127.0.0.1", 9092)
"""Where commands look for a broker."""
FOLDER: Final = "security"
"""Beside the logs, in the data directory."""


def prepare(arguments: argparse.Namespace, folder: str, listen: str) -> tuple[Development, list[RawSetting]]:
    """Keys and a first user in `folder`, and the settings of a broker that has them. Raises `ConfigError`."""
    for option, given in (
        ("--brokers", arguments.brokers), ("--coordination", arguments.coordination), ("--config", arguments.config),
    ):  # fmt: skip
        if given is not None:
            raise ConfigError(
                f"--secure is for one broker that stands alone; leave out {option}, or set listeners, ssl.keystore.*"
                " and authorizer.class.name yourself (docs/security.md)"
            )
    try:
        listeners = parse_listeners(listen)
    except ValueError as error:
        raise ConfigError(f"--listen {listen}: {error}") from None
    if len(listeners) != 1:
        raise ConfigError(f"--listen {listen}: with --secure give one HOST:PORT")
    _, host, port = listeners[0]
    made = obtain(os.path.join(folder, FOLDER), [host])
    settings = made.broker_settings(address(host, port))
    return made, [RawSetting(name, value, "--secure") for name, value in settings.items()]


def add_first_user(broker: Broker, made: Development) -> None:
    """Give the first user its password, where the broker does not know the user, or has the password of a folder that
    was removed since."""
    add_users(broker, {made.user: made.password}, [MECHANISM], anew=made.is_new)()


def told(made: Development, host: str, port: int) -> str:
    """What a user has to do next, with a broker that listens there; port 0: its listener is not bound yet."""
    place = address(host or "127.0.0.1", port) if port else "HOST:PORT"
    where = "" if (host, port) == DEFAULT_SERVER else f" -b {place}"
    return (
        f"logkernel secure: clients set what is in {made.client.resolve()} (user {made.user}); e.g."
        f" logkernel topic list{where} --command-config {made.client}"
    )
