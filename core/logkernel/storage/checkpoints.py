"""Kafka's small text files: checkpoints, `partition.metadata`, `meta.properties`, the clean-shutdown mark.

Each has a pure parser and formatter here; who writes them, and when, is `directory` and `log`.
A checkpoint is `version`, number of lines, then one line an entry:

    0
    2
    orders 0 4711
    orders 1 12
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from uuid import UUID

from logkernel.attrs_lite import frozen
from logkernel.errors import LogkernelError
from logkernel.vocabulary import EpochStart, TopicPartition, format_id

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEAN_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLUSTER_MEMBER = "cluster.member"
"""An empty file beside a metadata log that does not count any more, as its broker serves as one of a cluster."""
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
MAX_ENTRIES = 10_000_000
_MAX_LONG = 2**63 - 1


class CorruptCheckpoint(LogkernelError):
    """A text file of the data directory cannot be read; the text names file and line."""


def _lines(text: str, path: str, fields: int) -> list[list[str]]:
    lines = text.split("\n")
    if len(lines) < 2 or lines[0] != "0":
        raise CorruptCheckpoint(f"{path}, line 1: version {lines[0]!r} is not 0")
    count = _number(lines[1], path, 2)
    if count > MAX_ENTRIES or len(lines) - 2 < count:
        raise CorruptCheckpoint(f"{path}, line 2: {count} entries announced, {len(lines) - 2} lines follow")
    if any(line for line in lines[2 + count :]):
        raise CorruptCheckpoint(f"{path}, line {3 + count}: more lines than the {count} announced")
    rows = []
    for number, line in enumerate(lines[2 : 2 + count], 3):
        row = line.split(" ")
        if len(row) != fields:
            raise CorruptCheckpoint(f"{path}, line {number}: {line!r} has not {fields} fields")
        rows.append(row)
    return rows


def _number(text: str, path: str, line: int) -> int:
    if not (text.isascii() and text.removeprefix("-").isdigit()) or abs(int(text[:21])) > _MAX_LONG:
        raise CorruptCheckpoint(f"{path}, line {line}: {text[:40]!r} is no 64-bit number")
    number = int(text)
    if number < 0:
        raise CorruptCheckpoint(f"{path}, line {line}: {number} is negative")
    return number


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path}: byte {error.start} is no UTF-8") from None


def parse_offsets(data: bytes, path: str) -> dict[TopicPartition, int]:
    """An offset checkpoint. Raises `CorruptCheckpoint`."""
    return {
        TopicPartition(topic, _number(partition, path, line)): _number(offset, path, line)
        for line, (topic, partition, offset) in enumerate(_lines(_text(data, path), path, 3), 3)
    }


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    rows = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"0\n{len(rows)}\n{''.join(rows)}".encode()


def parse_epochs(data: bytes, path: str) -> list[EpochStart]:
    """A leader epoch checkpoint; epochs and offsets ascend. Raises `CorruptCheckpoint`."""
    found: list[EpochStart] = []
    for line, (epoch, start) in enumerate(_lines(_text(data, path), path, 2), 3):
        row = EpochStart(_number(epoch, path, line), _number(start, path, line))
        if found and (row.epoch <= found[-1].epoch or row.start_offset < found[-1].start_offset):
            raise CorruptCheckpoint(f"{path}, line {line}: epoch {row.epoch} from {row.start_offset} is out of order")
        found.append(row)
    return found


def format_epochs(epochs: Iterable[EpochStart]) -> bytes:
    rows = [f"{epoch} {start}\n" for epoch, start in epochs]
    return f"0\n{len(rows)}\n{''.join(rows)}".encode()


# ---------------------------------------------------------------- ids


_FROM_URL = str.maketrans("-_+/", "+/\0\0")


def parse_id(text: str) -> UUID | None:
    """A UUID in Kafka's base64, or None for other text."""
    try:
        raw = a2b_base64(text.translate(_FROM_URL) + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        return None
    return UUID(bytes=raw) if len(raw) == 16 else None


def parse_partition_metadata(data: bytes, path: str) -> UUID:
    """The topic id. Raises `CorruptCheckpoint`."""
    fields = dict(line.partition(": ")[::2] for line in _text(data, path).splitlines())
    topic_id = parse_id(fields.get("topic_id", ""))
    if fields.get("version") != "0" or topic_id is None:
        raise CorruptCheckpoint(f"{path}: expected 'version: 0' and 'topic_id: <22 letters>', found {data[:80]!r}")
    return topic_id


def format_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {format_id(topic_id)}".encode()


# ---------------------------------------------------------------- meta.properties


@frozen
class MetaProperties:
    """The owner of a data directory, as in `meta.properties`. Version 0, usually without `directory_id`, is the only
    one that Kafka's brokers in ZooKeeper mode read."""

    node_id: int
    cluster_id: str
    directory_id: str | None = None
    version: int = 1


ID_FIELDS = {0: "broker.id", 1: "node.id"}
"""What each version of the file calls the node id."""


def parse_meta(data: bytes, path: str) -> MetaProperties:
    """`meta.properties`, version 1 (Kafka 4) or 0 (ZooKeeper times: `broker.id`). Raises `CorruptCheckpoint`."""
    fields: dict[str, str] = {}
    for line in _text(data, path).splitlines():
        if line.strip() and line.lstrip()[0] not in "#!":
            key, _, value = line.partition("=")
            fields[key.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    text = fields.get("version", "0")
    if text not in ("0", "1"):
        raise CorruptCheckpoint(f"{path}: version {text!r} is neither 0 nor 1")
    version = int(text)
    name = ID_FIELDS[version]
    node_id = fields.get(name, "")
    if not (node_id.isascii() and node_id.isdigit()):
        raise CorruptCheckpoint(f"{path}: {name}={node_id!r} is no number")
    return MetaProperties(int(node_id), fields.get("cluster.id", ""), fields.get("directory.id"), version)


def format_meta(meta: MetaProperties) -> bytes:
    rows = [f"{ID_FIELDS[meta.version]}={meta.node_id}", f"version={meta.version}", f"cluster.id={meta.cluster_id}"]
    if meta.directory_id is not None:
        rows.append(f"directory.id={meta.directory_id}")
    return ("#\n" + "\n".join(rows) + "\n").encode()


def format_clean_shutdown(broker_epoch: int = -1) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def parse_clean_shutdown(data: bytes) -> int:
    """The broker epoch, -1 where the mark holds none: its presence alone means a clean shutdown."""
    try:
        found = json.loads(data)
    except ValueError:
        return -1
    epoch = found.get("brokerEpoch") if isinstance(found, dict) else None
    return epoch if isinstance(epoch, int) else -1
