"""Settings of one group: its own within the broker's bounds, else the broker's."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from logkernel.config.nearest import nearest
from logkernel.config.sources import check_bounds, not_among, refusal
from logkernel.errors import InvalidConfig

if TYPE_CHECKING:
    from logkernel.config.broker import BrokerConfig

log = logging.getLogger("logkernel.config")


def group_value(config: BrokerConfig, own: Mapping[str, str], name: str) -> Any:
    """The effective value. A stored value is clamped to today's bounds; one the plugin no longer accepts is replaced by
    the default. The name of a plugin is returned as it is: whoever asks the plugin knows which there are.

    Raises KeyError for a setting that groups do not have.
    """
    setting = config.definitions.group[name]
    if name in own:
        try:
            value = setting.parsed(own[name]) if setting.chooses else setting.typed(own[name])
        except ValueError as error:
            log.warning("%s; until then the default holds", refusal(setting, own[name], str(error)))
        else:
            if setting.between is not None:
                low, high = setting.between
                value = max(value, config.get(low)) if low else value
                value = min(value, config.get(high))
            return value
    for behind in setting.synonyms:
        value = config.get(behind)
        if value is not None:
            return value
    return None if setting.default is None else setting.typed(setting.default)


def _near(name: str, known: Collection[str]) -> str:
    """Consumer, share and Streams groups have settings of one name, which a client knows without the prefix."""
    alike = sorted(one for one in known if one.endswith(f".{name}"))
    near = ", ".join(alike[:-1]) + f" or {alike[-1]}" if len(alike) > 1 else nearest(name, known)
    return f"did you mean {near}?" if near else "`logkernel config list group NAME --all` lists all names"


def validate_group(config: BrokerConfig, own: Mapping[str, str]) -> None:
    """All of a group's own settings, one by one and together. Raises InvalidConfig, in Kafka's words."""
    known = config.definitions.group
    for name, text in own.items():
        setting = known.get(name)
        if setting is None:
            raise InvalidConfig(f"Unknown group config name: {name}; {_near(name, known)}")
        try:
            value = setting.typed(text)
        except ValueError as error:
            raise InvalidConfig(refusal(setting, text, str(error))) from None
        check_bounds(setting, value, config.get)
        if setting.among and value not in config.get(setting.among):
            raise InvalidConfig(not_among(setting, text, config.get(setting.among)))
    for setting in known.values():
        upper, lower = setting.name, setting.above
        if (
            lower
            and (upper in own or lower in own)
            and not (group_value(config, own, upper) > group_value(config, own, lower))
        ):
            raise InvalidConfig(f"{upper} must be greater than {lower}; raise the one or lower the other")
