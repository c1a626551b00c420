"""Levels of this broker's loggers, as resources of type BROKER_LOGGER: they hold until the broker ends.

Kafka's names of levels stand for Python's; "root" is the parent of all loggers here, `logkernel`. A logger without a
level of its own shows its parent's.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

from logkernel.errors import InvalidConfig, InvalidRequest, KafkaError
from logkernel.requests.configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsAlterConfigsResourceResponse,
)

BROKER_LOGGER = 8
SOURCE = 6
"""DYNAMIC_BROKER_LOGGER_CONFIG."""
SET, DELETE = 0, 1
LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
ROOT, OURS = "root", "logkernel"

log = logging.getLogger("logkernel.admin")


def names() -> list[str]:
    """Every logger that a module here made so far, and "root"."""
    made: Iterable[str] = logging.root.manager.loggerDict
    return [ROOT, *sorted(name for name in made if name.startswith(OURS + "."))]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(OURS if name == ROOT else name)


def level_of(name: str) -> str:
    effective = _logger(name).getEffectiveLevel()
    return max((word for word in LEVELS if LEVELS[word] <= effective), key=LEVELS.__getitem__, default="TRACE")


def describe(node_id: int, resource: DescribeConfigsResource, *, documentation: bool) -> DescribeConfigsResult:
    row = DescribeConfigsResult(resource_type=BROKER_LOGGER, resource_name=resource.resource_name)
    try:
        _check_name(node_id, resource.resource_name)
    except KafkaError as error:
        row.error_code, row.error_message = error.code, str(error)
        return row
    wanted = set(resource.configuration_keys or ())
    row.configs = [
        DescribeConfigsResourceResult(
            name=name,
            value=level_of(name),
            config_source=SOURCE,
            documentation=f"Level of the logger: one of {', '.join(LEVELS)}." if documentation else None,
        )
        for name in names()
        if not wanted or name in wanted
    ]
    return row


def alter(
    node_id: int, resource: IncrementalAlterConfigsAlterConfigsResource, *, dry: bool
) -> IncrementalAlterConfigsAlterConfigsResourceResponse:
    """All levels of the request, or none."""
    row = IncrementalAlterConfigsAlterConfigsResourceResponse(
        resource_type=BROKER_LOGGER, resource_name=resource.resource_name
    )
    try:
        _check_name(node_id, resource.resource_name)
        if any(times > 1 for times in Counter(one.name for one in resource.configs).values()):
            raise InvalidRequest("a logger is named more than once; name it once")
        wanted = [_checked(one) for one in resource.configs]
    except KafkaError as error:
        row.error_code, row.error_message = error.code, str(error)
        return row
    for name, level in [] if dry else wanted:
        _logger(name).setLevel(level)
        log.info("log level changed: logger=%s level=%s", name, level_of(name))
    return row


def _checked(one: IncrementalAlterConfigsAlterableConfig) -> tuple[str, int]:
    if one.name not in names():
        raise InvalidConfig(f"there is no logger {one.name[:100]!r}; DescribeConfigs of the broker-logger lists all")
    if one.config_operation == DELETE:
        if one.name == ROOT:
            raise InvalidRequest("the root logger keeps a level; set another one")
        return one.name, logging.NOTSET
    if one.config_operation != SET:
        raise InvalidRequest(f"{one.name}: a level is not a list to append to; set or delete it")
    if one.value not in LEVELS:
        raise InvalidConfig(f"{one.name}={str(one.value)[:100]}: no such level; use one of {', '.join(LEVELS)}")
    return one.name, LEVELS[one.value]


def _check_name(node_id: int, name: str) -> None:
    if name != str(node_id):
        raise InvalidRequest(f"the loggers of broker {name[:20]!r} are asked there; this is broker {node_id}")


def split(resources: list[Any]) -> tuple[list[Any], list[Any]]:
    """(loggers, everything else)."""
    loggers = [one for one in resources if one.resource_type == BROKER_LOGGER]
    return loggers, [one for one in resources if one.resource_type != BROKER_LOGGER]
