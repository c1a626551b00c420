"""From settings to a broker that is ready to start."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from logkernel.broker.broker import Broker
from logkernel.broker.runtime import Randomness, Runtime
from logkernel.broker.timers import Clock
from logkernel.broker.workers import Workers
from logkernel.config.broker import BrokerConfig
from logkernel.config.loading import plugin_lists
from logkernel.config.sources import Overrides, RawSetting
from logkernel.contracts import SharedCoordination, StateLog
from logkernel.errors import ConfigError, PluginError
from logkernel.kernel import Kernel
from logkernel.storage.disk import Disk

if TYPE_CHECKING:
    from logkernel.broker.governance.access import ClusterAccess

log = logging.getLogger("logkernel.build")


def build(
    path: str | PathLike[str] | None = None,
    overrides: Overrides = (),
    *,
    in_memory: bool = False,
    plugins: Iterable[object] = (),
    kernel: Kernel | None = None,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
    workers: Workers | None = None,
    disk: Disk | None = None,
    access: ClusterAccess | None = None,
    serves: bool = False,
) -> Broker:
    """A broker from a file and `name=value` overrides; `access` joins it to a cluster, as do the settings of a broker
    that `serves`. Raises `ConfigError`, `PluginError`.

    `plugins` are registered beside those that are installed; a `kernel` has its own. `clock`, `randomness`, `workers`
    and `disk` stand in for the system's.
    """
    if kernel is None:
        allow, block = plugin_lists(path, overrides)
        kernel = Kernel(allow=allow, block=block, plugins=plugins)
    config = BrokerConfig.load(path, overrides, kernel.declarations())
    for warning in config.warnings:
        log.warning("%s", warning)
    if access is None and not in_memory:
        access = _named_access(config, kernel, serves=serves)
    runtime = Runtime(config, kernel, clock=clock, randomness=randomness, workers=workers)
    return Broker(runtime, access, in_memory=in_memory, disk=disk)


def _named_access(config: BrokerConfig, kernel: Kernel, *, serves: bool) -> ClusterAccess | None:
    """To the coordination that the settings name, if it is one that brokers share."""
    name = _shared_name(config, kernel, serves=serves)
    if name is None:
        return None
    if not serves:
        raise ConfigError(f"coordination={name}: only a broker that serves can be in a cluster; run logkernel serve")
    from logkernel.broker.governance.access import ClusterAccess

    session: SharedCoordination | None = None

    def new_session() -> SharedCoordination:
        nonlocal session
        session = _first_session(name, config, kernel) if session is None else session.renew()
        return session

    return ClusterAccess(new_session)


def _shared_name(config: BrokerConfig, kernel: Kernel, *, serves: bool) -> str | None:
    """The coordination that the settings name, if it is one that brokers share."""
    name: str = config.get("coordination")
    shared = kernel.names("shared coordination")
    if config.origin("coordination") == "default" and serves:
        named = (other for other in shared if config.get(f"{other}.connect", ""))
        name = next(named, name)
    return name if name in shared else None


def open_coordination(
    path: str | PathLike[str] | None, overrides: Sequence[str | RawSetting], within_ms: int
) -> SharedCoordination:
    """A session with the coordination that the settings name, for who is no broker and only reads. It is waited for
    `within_ms` at most. Raises `ConfigError`, `PluginError`, `KafkaStorageError`."""
    allow, block = plugin_lists(path, overrides)
    kernel = Kernel(allow=allow, block=block)
    config = BrokerConfig.load(path, overrides, kernel.declarations())
    name = _shared_name(config, kernel, serves=True)
    if name is None:
        raise ConfigError(
            f"coordination={config.get('coordination')} is none that brokers share; name it by --coordination"
            f" zookeeper://h1:2181/chroot, or by a file that has zookeeper.connect"
        )
    wait = f"{name}.connection.timeout.ms"
    own_ms = config.get(wait) if wait in config.definitions.broker else 0
    if own_ms is None or own_ms > within_ms:
        limit = RawSetting(wait, str(within_ms), "--timeout")
        config = BrokerConfig.load(path, [*overrides, limit], kernel.declarations())
    return _first_session(name, config, kernel)


def _first_session(name: str, config: BrokerConfig, kernel: Kernel) -> SharedCoordination:
    def open_log() -> StateLog:
        raise PluginError(f"coordination={name} is shared, and asks for a log of one broker; name another plugin")

    found = kernel.coordination(name, open_log, config)
    if not isinstance(found, SharedCoordination):
        raise PluginError(f"coordination={name} is named as shared, and is none that brokers share; see its plugin")
    return found
