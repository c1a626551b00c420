"""Settings of one group: its own within the broker's bounds, else the broker's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logkernel.config.nearest import nearest
from logkernel.config.sources import remedy, typed
from logkernel.errors import InvalidConfig

if TYPE_CHECKING:
    from logkernel.config.broker import BrokerConfig


def group_value(config: BrokerConfig, own: Mapping[str, str], name: str) -> Any:
    """The effective value. One that lay within bounds when it was set is held within those of today.

    Raises KeyError for a setting that groups do not have.
    """
    from logkernel.config.table_group import BOUNDS

    setting = config.definitions.group[name]
    if name in own:
        value = typed(setting, own[name])
        if name in BOUNDS:
            low, high = (config.get(bound) for bound in BOUNDS[name])
            value = min(max(value, low), high)
        return value
    if setting.synonyms:
        return config.get(setting.synonyms[0])
    assert setting.default is not None
    return typed(setting, setting.default)


def validate_group(config: BrokerConfig, own: Mapping[str, str]) -> None:
    """All of a group's own settings, one by one and together. Raises InvalidConfig."""
    from logkernel.config.table_group import BOUNDS, ORDER

    known = config.definitions.group
    for name, text in own.items():
        setting = known.get(name)
        if setting is None:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else "DescribeConfigs lists all names"
            raise InvalidConfig(f"{name}={text}: no group setting has this name; {hint}")
        try:
            value = typed(setting, text)
        except ValueError as error:
            raise InvalidConfig(f"{name}={text}: {error}; {remedy(setting)}") from None
        if name in BOUNDS:
            low, high = BOUNDS[name]
            if not config.get(low) <= value <= config.get(high):
                raise InvalidConfig(
                    f"{name}={text}: must lie between {low}={config.get(low)} and {high}={config.get(high)}"
                )
    for upper, lower in ORDER:
        if (upper in own or lower in own) and group_value(config, own, upper) <= group_value(config, own, lower):
            raise InvalidConfig(f"{upper} must be greater than {lower}")
