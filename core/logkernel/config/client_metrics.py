"""Settings of a client metrics subscription (KIP-714): kept and described. No client is asked for metrics yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from logkernel.config.definitions import Setting
from logkernel.config.describe import Described, Synonym
from logkernel.config.sources import DEFAULT_CONFIG
from logkernel.config.values import INT, LIST, parse, type_code
from logkernel.errors import InvalidConfig, InvalidRequest

CLIENT_METRICS_CONFIG: Final = 7
SELECTORS: Final = frozenset(
    ("client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address",
     "client_source_port")
)  # fmt: skip
MIN_INTERVAL_MS, MAX_INTERVAL_MS = 100, 3_600_000
MAX_PATTERN_CHARACTERS: Final = 1_000

ROWS: Final = {
    row.name: row
    for row in (
        Setting("interval.ms", INT, "300000", None, "How often a client that matches pushes its metrics."),
        Setting("match", LIST, "", None, "Clients that are meant: selector=pattern pairs, all of which must match."),
        Setting("metrics", LIST, "", None, "Prefixes of the metrics that are asked for; * asks for all."),
    )
}


def validate_client_metrics(own: Mapping[str, str]) -> None:
    """Raises InvalidRequest for a name or an interval, InvalidConfig for a pattern, as Kafka does."""
    for name in own:
        if name not in ROWS:
            raise InvalidRequest(f"Unknown client metrics configuration: {name[:100]}; use {', '.join(ROWS)}")
    if "interval.ms" in own:
        _check_interval(own["interval.ms"])
    for pair in parse(LIST, own.get("match", "")):
        _check_pattern(pair)


def _check_interval(text: str) -> None:
    try:
        interval_ms = parse(INT, text)
    except ValueError as error:
        raise InvalidConfig(
            f"Invalid value {text[:100]} for configuration interval.ms: {error}; give milliseconds"
        ) from None
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        raise InvalidRequest(
            f"Invalid value {interval_ms} for interval.ms, interval must be between {MIN_INTERVAL_MS} and"
            f" {MAX_INTERVAL_MS} (1 hour); give milliseconds within"
        )


def _check_pattern(pair: str) -> None:
    selector, equals, pattern = pair.partition("=")
    if not equals or selector.strip() not in SELECTORS:
        raise InvalidConfig(
            f"Illegal client matching pattern: {pair[:100]}; write selector=pattern with one of"
            f" {', '.join(sorted(SELECTORS))}"
        )
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidConfig(f"match: a pattern has {len(pattern)} characters; {MAX_PATTERN_CHARACTERS} are the most")
    try:
        re.compile(pattern.strip())
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidConfig(
            f"Illegal client matching pattern: {pair[:100]}: {error}; write a regular expression"
        ) from None


def describe_client_metrics(own: Mapping[str, str], keys: Iterable[str] | None = None) -> list[Described]:
    wanted = set(keys) if keys else set(ROWS)
    return [_described(ROWS[name], own.get(name)) for name in sorted(wanted & set(ROWS))]


def _described(row: Setting, text: str | None) -> Described:
    places = [] if text is None else [Synonym(row.name, text, CLIENT_METRICS_CONFIG)]
    value, source = (row.default, DEFAULT_CONFIG) if text is None else (text, CLIENT_METRICS_CONFIG)
    return Described(row.name, value, source, type_code(row.type), False, False, row.doc, places)
