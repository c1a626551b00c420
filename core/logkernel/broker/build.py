"""From settings to a broker that is ready to start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from logkernel.broker.broker import Broker
from logkernel.broker.log_manager import LogManager
from logkernel.broker.runtime import Randomness, Runtime
from logkernel.broker.timers import Clock
from logkernel.broker.workers import Workers
from logkernel.config.broker import BrokerConfig
from logkernel.config.loading import plugin_lists
from logkernel.kernel import Kernel
from logkernel.storage.disk import Disk

if TYPE_CHECKING:
    from logkernel.broker.membership import Link

log = logging.getLogger("logkernel.build")


def build(
    path: str | PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    *,
    in_memory: bool = False,
    kernel: Kernel | None = None,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
    workers: Workers | None = None,
    disk: Disk | None = None,
    link: Link | None = None,
) -> Broker:
    """A broker from a file and `name=value` overrides; `link` joins it to a cluster. Raises `ConfigError`,
    `PluginError`.

    `clock`, `randomness`, `workers` and `disk` stand in for the system's, for a simulation that owns the broker.
    """
    if kernel is None:
        allow, block = plugin_lists(path, overrides)
        kernel = Kernel(allow=allow, block=block)
    config = BrokerConfig.load(path, overrides, kernel.declarations())
    for warning in config.warnings:
        log.warning("%s", warning)
    runtime = Runtime(config, kernel, clock=clock, randomness=randomness, workers=workers)
    return Broker(runtime, LogManager(runtime, in_memory=in_memory, disk=disk), link)
