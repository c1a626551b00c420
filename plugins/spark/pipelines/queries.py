"""The SQL that pipelines bring along, and what they read out of the user's. Texts in, texts out.

`input` has the columns of the data source: key, value, topic, partition, offset, timestamp, timestampType, headers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ..options import COLUMNS

ALL: Final = (*COLUMNS, "headers")
_HARMLESS: Final = re.compile(r"count\s*\(\s*\*\s*\)|\bvalue\s*\.\s*\*", re.IGNORECASE)
"""Stars that name no column of `input`."""
_IMPLICIT: Final = re.compile(r"\*|\|>|\bnatural\b|\btable\s+input\b|\bstruct\s*\(\s*input\b", re.IGNORECASE)
"""What may mean columns without naming them."""


def passed(typed: bool, to_table: bool) -> str:
    """What goes from a log to where it is written, if the step has no SQL."""
    if not to_table:
        return "SELECT key, value, headers FROM input"
    values = "value.*" if typed else "value"
    places = "topic AS _topic, partition AS _partition, offset AS _offset, timestamp AS _timestamp"
    return f"SELECT CAST(key AS STRING) AS _key, {values}, {places} FROM input"


def columns(sql: str, needed: Collection[str] = ()) -> tuple[str, ...]:
    """Which columns of a log the SQL can mean. Spark tells a source nothing of it, and each costs."""
    if _IMPLICIT.search(_HARMLESS.sub(" ", sql)):
        return ALL if re.search(r"\bheaders\b", sql, re.IGNORECASE) else COLUMNS
    words = {word.lower() for word in re.findall(r"\w+", sql)} | {name.lower() for name in needed}
    return tuple(name for name in ALL if name.lower() in words) or ("offset",)


# ---------------------------------------------------------------- the latest value of each key


def latest(view: str, *, headers: bool = False) -> str:
    """The latest record of each key, without tombstones: by offset within a partition, and by time where a key lies in
    several. A record without a key is none's latest."""
    more = ", headers" if headers else ""
    record = f"struct(topic, partition, offset, timestamp, key, value{more})"
    each = (
        f"SELECT key AS k, max_by({record}, offset) AS last FROM {view} WHERE key IS NOT NULL"
        " GROUP BY key, topic, partition"
    )
    return (
        f"SELECT last.* FROM (SELECT max_by(last, struct(last.timestamp, last.offset)) AS last FROM ({each})"
        " GROUP BY k) WHERE last.value IS NOT NULL"
    )


def as_table(view: str) -> str:
    """A compacted topic as a table of the file: keys are text."""
    return f"SELECT CAST(key AS STRING) AS key, value, timestamp, topic, partition, offset FROM ({latest(view)})"


def compacted(typed: bool) -> str:
    values = "value.*" if typed else "value"
    places = "topic AS _topic, partition AS _partition, offset AS _offset, timestamp AS _timestamp"
    return f"CAST(key AS STRING) AS _key, {values}, {places}"


# ---------------------------------------------------------------- audit

_SUMMED: Final = ("records", "gaps", "missing", "duplicates", "keyless", "tombstones", "bytes")
_OF_NOTHING: Final = {**dict.fromkeys(("first", "last", "earliest", "latest")), "checksum": "0" * 16}


def audit(identity: str, headers: bool) -> str:
    """Counts by partition. `identity` is what makes two records the same, for duplicates: key and value by default."""
    whole = "key IS NULL, key, value IS NULL, value"
    if headers:
        each = "transform(headers, header -> struct(header.key, header.value IS NULL, header.value))"
        whole += f", headers IS NULL, {each}"
    same = identity or "key IS NULL, key, value IS NULL, value"
    return f"""\
WITH found AS (
  SELECT topic, partition, offset, timestamp, key IS NULL AS keyless, value IS NULL AS tombstone,
    coalesce(length(key), 0) + coalesce(length(value), 0) AS bytes,
    xxhash64({whole}) AS hash, xxhash64({same}) AS one, xxhash64('other', {same}) AS two
  FROM input
), seen AS (
  SELECT *,
    row_number() OVER (PARTITION BY topic, one, two ORDER BY timestamp, partition, offset) AS nth,
    offset - lag(offset) OVER (PARTITION BY topic, partition ORDER BY offset) AS step
  FROM found
)
SELECT topic, partition, count(*) AS records, min(offset) AS first, max(offset) AS last,
  count_if(step > 1) AS gaps, coalesce(sum(if(step > 1, step - 1, 0)), 0) AS missing, count_if(nth > 1) AS duplicates,
  count_if(keyless) AS keyless, count_if(tombstone) AS tombstones, sum(bytes) AS bytes,
  date_format(min(timestamp), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'") AS earliest,
  date_format(max(timestamp), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'") AS latest,
  CAST(sum(CAST(hash AS DECIMAL(20, 0))) AS STRING) AS checksum
FROM seen GROUP BY topic, partition ORDER BY topic, partition"""


def audited(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `audit` as it is told: the checksum, a sum that no order changes, in 16 digits."""
    return {**row, "checksum": f"{int(row['checksum']) % (1 << 64):016x}"}


def with_empty(rows: Iterable[Mapping[str, Any]], partitions: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """`audited` rows, and one of no records for each of `partitions` that has none: a topic that lost all its records
    is to be seen, and compared."""
    found = {(row["topic"], row["partition"]): dict(row) for row in rows}
    for topic, partition in partitions:
        place = {"topic": topic, "partition": partition}
        found.setdefault((topic, partition), {**place, **dict.fromkeys(_SUMMED, 0), **_OF_NOTHING})
    return [found[place] for place in sorted(found)]


def totals(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`audited` rows by topic."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        total = found.setdefault(row["topic"], {"topic": row["topic"], **dict.fromkeys(_SUMMED, 0), "checksum": "0"})
        for name in _SUMMED:
            total[name] += row[name]
        total["checksum"] = f"{(int(total['checksum'], 16) + int(row['checksum'], 16)) % (1 << 64):016x}"
    return list(found.values())


def complaints(fail_on: Collection[str], sums: Sequence[Mapping[str, Any]]) -> list[str]:
    """What of `totals` the step was told to fail on."""
    said = []
    for total in sums:
        if "gaps" in fail_on and total["missing"]:
            said.append(f"{total['topic']}: {total['missing']} offsets are missing, in {total['gaps']} gaps")
        if "duplicates" in fail_on and total["duplicates"]:
            said.append(f"{total['topic']}: {total['duplicates']} records are there more than once")
    if "difference" in fail_on:
        if len(sums) < 2:
            told = sums[0]["topic"] if sums else "no topic"
            said.append(f"there is nothing to compare: {told} is all that was found")
        first = sums[0] if sums else None
        for total in sums[1:]:
            assert first is not None
            if (total["records"], total["checksum"]) != (first["records"], first["checksum"]):
                said.append(
                    f"{total['topic']}: {total['records']} records, checksum {total['checksum']};"
                    f" {first['topic']}: {first['records']} records, checksum {first['checksum']}"
                )
    return said


# ---------------------------------------------------------------- to what is written


def for_log(names: Sequence[str], expressions: Mapping[str, str], has_topic: bool) -> list[str]:
    """`selectExpr` of the columns that a log takes, of rows with columns of these names.

    What has no column value is written as JSON of all its columns but those that say where it goes."""
    chosen = []
    for name in ("key", "value", "headers", "partition", "topic"):
        if name == "topic" and has_topic:
            continue
        sql = expressions.get(name) or (quoted(name) if name in names else "")
        if name == "value" and not sql:
            where = {"key", "headers", "partition"} | (set() if has_topic else {"topic"})
            fields = ", ".join(quoted(column) for column in names if column not in where)
            sql = f"to_json(struct({fields}))"
        if sql:
            chosen.append(f"{sql} AS {name}")
    return chosen


def as_log(types: Mapping[str, str]) -> list[str]:
    """`selectExpr` of columns as the writer has them; `types` are Spark's simple names by column.

    A key and a value that are neither text nor bytes become text, and what has fields JSON."""
    chosen = []
    for name, kind in types.items():
        if name in ("key", "value") and kind not in ("string", "binary"):
            nested = kind.startswith(("struct<", "map<", "array<"))
            chosen.append(f"to_json({name}) AS {name}" if nested else f"CAST({name} AS STRING) AS {name}")
        else:
            chosen.append(f"CAST({name} AS INT) AS {name}" if name == "partition" and kind != "int" else name)
    return chosen


def with_date(names: Collection[str], by: Collection[str]) -> str | None:
    """SQL of the column `date` where the table is to be in folders by it and the rows have a time alone."""
    if "date" not in by or "date" in names:
        return None
    found = next((name for name in ("_timestamp", "timestamp") if name in names), None)
    return None if found is None else f"CAST({quoted(found)} AS DATE)"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# ---------------------------------------------------------------- what went wrong

_STREAM: Final = re.compile(r"^\[STREAM_FAILED\] .*? terminated with exception: ")
_CALL: Final = re.compile(r"An error occurred while calling \S+\.")
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"^(?:\w+\.)*\w+: .+")


def essence(text: str) -> str:
    """The line of Spark's many that says why: what Python raised in a worker, else the first; what Java raised where
    that says only which call failed."""
    lines = [line.strip() for line in _STREAM.sub("", text).splitlines() if line.strip()]
    begin = next((at for at, line in enumerate(lines) if line.endswith(_TRACEBACK)), None)
    if begin is not None:
        raised = [line for line in lines[begin + 1 :] if _RAISED.match(line) and not line.startswith(("at ", "File "))]
        if raised:
            return raised[0]
    if len(lines) > 1 and _CALL.fullmatch(lines[0]):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else "it failed without a word"
