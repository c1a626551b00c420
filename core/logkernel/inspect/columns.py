"""Rows as lines, in the columns of Kafka's dump tool where it has the file, in the same tone where it has not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from logkernel.inspect.row_bytes import shown_field
from logkernel.inspect.rows import Row


def lines(row: Row) -> str:
    """The one line of a row."""
    return _WRITERS[row["kind"]](row)


def _segment(row: Row) -> str:
    return f"Log starting offset: {row['startOffset']}"


def _pairs(row: Row, *names: str) -> str:
    return " ".join(f"{name}: {_word(row[name])}" for name in names)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _batch(row: Row) -> str:
    if "count" not in row:
        head = f"offset: {row['lastOffset']}"
    else:
        head = _pairs(
            row,
            "baseOffset",
            "lastOffset",
            "count",
            "baseSequence",
            "lastSequence",
            "producerId",
            "producerEpoch",
            "partitionLeaderEpoch",
            "isTransactional",
            "isControl",
        )
        head += f" deleteHorizonMs: {_optional(row['deleteHorizonMs'])}"
    time = f"{row['timestampType']}: {row['timestamp']}"
    return f"{head} position: {row['position']} {time} " + _pairs(
        row, "size", "magic", "compresscodec", "crc", "isvalid"
    )


def _record(row: Row) -> str:
    line = f"| offset: {row['offset']} {row['timestampType']}: {row['timestamp']} {_pairs(row, 'keySize', 'valueSize')}"
    if "sequence" in row:
        line += f" sequence: {row['sequence']} headerKeys: [{','.join(row['headerKeys'])}]"
    else:
        line += f" isValid: {_word(row['isvalid'])} crc: {row['crc']}"
    if "endTxnMarker" in row:
        return f"{line} endTxnMarker: {row['endTxnMarker']} coordinatorEpoch: {row['coordinatorEpoch']}"
    if "controlType" in row:
        return f"{line} controlType: {row['controlType']}"
    if row.get("decoded"):
        key = "" if row["key"] is None else f" key: {_json(row['key'])}"
        return f"{line}{key} payload: {'<DELETE>' if row['value'] is None else _json(row['value'])}"
    line += "".join(_content(row, name, label) for name, label in (("key", "key"), ("value", "payload")))
    return f"{line} error: {row['error']}" if "error" in row else line


def _content(row: Row, name: str, label: str) -> str:
    found = shown_field(row, name)
    return "" if found is None else f" {label}: {found}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _trailing(row: Row) -> str:
    why = f": {row['error']}" if "error" in row else ""
    return f"Found {row['bytes']} invalid bytes at the end of {row['file']}{why}"


def _producer(row: Row) -> str:
    line = _pairs(row, "producerId", "producerEpoch", "coordinatorEpoch")
    line += f" currentTxnFirstOffset: {_optional(row['currentTxnFirstOffset'])} lastTimestamp: {row['lastTimestamp']}"
    if "lastSequence" in row:
        line += " " + _pairs(row, "firstSequence", "lastSequence", "lastOffset", "offsetDelta")
        line += f" timestamp: {row['lastTimestamp']}"
    return line


_WRITERS: dict[str, Callable[[Row], str]] = {
    "segment": _segment,
    "batch": _batch,
    "record": _record,
    "trailing": _trailing,
    "error": lambda row: f"| offset: {row['offset']} error: {row['error']}",
    "offset": lambda row: _pairs(row, "offset", "position"),
    "time": lambda row: _pairs(row, "timestamp", "offset"),
    "aborted": lambda row: _pairs(row, "version", "producerId", "firstOffset", "lastOffset", "lastStableOffset"),
    "producer": _producer,
    "checkpoint": lambda row: _pairs(row, "topic", "partition", "offset"),
    "epoch": lambda row: _pairs(row, "epoch", "startOffset"),
    "partition": lambda row: _pairs(row, "version", "topicId"),
    "directory": lambda row: _pairs(row, "nodeId", "clusterId", "directoryId"),
    "shutdown": lambda row: _pairs(row, "brokerEpoch"),
}
