"""Subscriptions by regular expression: RE2's syntax, matched against whole topic names, as Kafka does.

RE2 needs time in proportion to its text whatever the expression, so clients may send any; its library is
imported when the first one comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from logkernel.errors import InvalidRegularExpression
from logkernel.vocabulary import AclOperation

from ..coordinator import GroupCoordinator
from . import records
from .records import ResolvedRegex
from .state import ConsumerGroup

MAX_MEMORY_BYTES: Final = 8 << 20


def compiled(expression: str) -> Any:
    """Raises `InvalidRegularExpression`."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    try:
        return re2.compile(expression, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {text}."
        ) from None


def resolve(coordinator: GroupCoordinator, expression: str, version: int = 1) -> ResolvedRegex:
    """The topics that there are now of that name, and that the member whose request this is may describe. Raises
    `InvalidRegularExpression`."""
    pattern = compiled(expression)
    found = [name for name in coordinator.cluster.topic_names() if pattern.fullmatch(name)]
    topics = tuple(coordinator.cluster.allowed(coordinator.sender, AclOperation.DESCRIBE, found))
    return ResolvedRegex(topics, version, coordinator.wall_ms)


def refreshed(
    coordinator: GroupCoordinator, group: ConsumerGroup, expressions: Iterable[str]
) -> dict[str, ResolvedRegex]:
    """Expressions that find other topics than before, and those that were looked at too long ago."""
    found: dict[str, ResolvedRegex] = {}
    for expression in sorted(expressions):
        before = group.regexes.get(expression)
        now = resolve(coordinator, expression, before.version + 1 if before is not None else 1)
        if before is None or now.topics != before.topics or is_old(coordinator, before):
            found[expression] = now
    return found


def is_old(coordinator: GroupCoordinator, resolved: ResolvedRegex) -> bool:
    return coordinator.wall_ms - resolved.resolved_ms >= coordinator.settings.consumer.regex_refresh_interval_ms


def keep(coordinator: GroupCoordinator, group_id: str, found: dict[str, ResolvedRegex]) -> None:
    for expression, resolved in found.items():
        coordinator.append(records.key(records.REGEX, group_id, expression), records.encode_regex(resolved))


def forget(coordinator: GroupCoordinator, group_id: str, expressions: Iterable[str]) -> None:
    for expression in sorted(expressions):
        coordinator.append(records.key(records.REGEX, group_id, expression), None)
