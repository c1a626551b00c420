"""What `logkernel serve --secure` adds to a broker: a certificate of its own authority, a listener that asks who a
client is, the rules of Kafka's authorizer, and a first user."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from logkernel.broker.first_users import add_users
from logkernel.config.listeners import Listener, address, parse_listeners
from logkernel.config.loading import PROTOCOL_MAP
from logkernel.config.sources import STATIC_BROKER_CONFIG, RawSetting, from_overrides, refuse
from logkernel.errors import ConfigError
from logkernel.security.development import MECHANISM, Development, is_made, obtain, planned
from logkernel.storage.names import SECURITY_FOLDER

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.config.broker import BrokerConfig

DEFAULT_SERVER: Final = ("127.0.0.1", 9092)
"""Where commands look for a broker."""
PROTOCOL: Final = "SASL_SSL"
"""Of the listener that `--secure` makes, and its name."""
AUTHORIZER: Final = "authorizer.class.name"


def prepare(
    arguments: argparse.Namespace, folder: str, listen: str, given: Sequence[str | RawSetting]
) -> tuple[Development, list[RawSetting]]:
    """Keys and a first user in the first data directory that is `given`, else in `folder`, and the settings of a broker
    that has them. Raises `ConfigError`, also where one of the settings that are `given` says something else."""
    for option, value in (("--coordination", arguments.coordination), ("--config", arguments.config)):
        if value is not None:
            raise ConfigError(
                f"--secure is for one broker that stands alone; leave out {option}, or set listeners, ssl.keystore.*"
                " and authorizer.class.name yourself (docs/secure-broker.md)"
            )
    listener = _listener(listen)
    rows = from_overrides(given)
    place = os.path.join(_first_folder(rows) or folder, SECURITY_FOLDER)
    where = address(listener.host, listener.port)
    _check_given(rows, planned(place).broker_settings(where))
    made = obtain(place, [listener.host])
    return made, [RawSetting(name, value, "--secure") for name, value in made.broker_settings(where).items()]


def _first_folder(given: Sequence[RawSetting]) -> str:
    """ "" where no setting names a data directory."""
    texts = {row.name: row.text for row in given}
    return (texts.get("log.dirs") or texts.get("log.dir") or "").partition(",")[0].strip()


def _listener(listen: str) -> Listener:
    """The one address of `--listen`, without a name or with that of the listener that `--secure` makes."""
    try:
        listeners = parse_listeners(listen)
    except ValueError as error:
        raise ConfigError(f"--listen {listen}: {error}") from None
    if len(listeners) != 1:
        raise ConfigError(f"--listen {listen}: with --secure give one HOST:PORT")
    (found,) = listeners
    if "://" in listen and found.name != PROTOCOL:
        where = address(found.host, found.port)
        raise ConfigError(f"--listen {listen}: --secure makes the listener {PROTOCOL}; give --listen {where}")
    return found


def _check_given(given: Sequence[RawSetting], ours: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a setting that `--secure` would replace, and for a map by which its listener would speak
    something else."""
    for row in given:
        if row.where == "--listen":
            continue
        if row.name in ours:
            remedy = "use --listen HOST:PORT" if row.name == "listeners" else "leave it out, or leave out --secure"
            raise refuse(row, f"--secure sets {row.name} itself", remedy)
        if row.name == PROTOCOL_MAP:
            raise refuse(row, f"--secure has one listener, which speaks {PROTOCOL}", "leave it out")


def check_protected(config: BrokerConfig, folders: Iterable[str]) -> None:
    """Raise `ConfigError` where `--secure` made one of the data directories, and a start without it would serve this in
    plain text to everybody, while no setting says that this is meant."""
    given = dict(config.layers)[STATIC_BROKER_CONFIG]
    if AUTHORIZER in given or PROTOCOL_MAP in given or ("listeners" in given and "://" in given["listeners"].text):
        return
    for folder in folders:
        place = os.path.join(folder, SECURITY_FOLDER)
        if is_made(place):
            raise ConfigError(
                f"{folder} was served by --secure, and would be open to everybody without it; start it with --secure,"
                f" or say by --config FILE or --listen NAME://HOST:PORT what its listeners speak, or remove {place}"
            )


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
