"""From what a file says to what Spark is to do: `plan`. Pure; `runner` carries it out.

| step | read | written | how |
|---|---|---|---|
| stream | a log | a log or a table | micro-batches with a checkpoint, each written exactly once |
| batch | a table | a log | once under its jobId |
| compact | a log | a log or a table | the latest value of each key; to a log once under its jobId |
| audit | a log | nothing, or a table | counts by partition |

Whatever a step's SQL names of the file's `tables` is a view for it; what is read is the view `input`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from logkernel.attrs_lite import frozen
from logkernel.config.sources import RawSetting
from logkernel.errors import ConfigError

from .. import options as option
from . import queries
from .spec import Block, Spec, StepSpec, located, unknown

STREAM, BATCH, AUDIT, COMPACT = "stream", "batch", "audit", "compact"
FORMATS: Final = ("parquet", "delta")
"""What tables are written as; more can be read."""
READABLE: Final = (*FORMATS, "csv", "json", "orc", "text", "avro")
MODES: Final = ("append", "update", "complete")
FAIL_ON: Final = ("gaps", "duplicates", "difference")
AVAILABLE: Final = "available-now"
TRIGGER: Final = re.compile(r"[0-9]{1,9} (milliseconds?|seconds?|minutes?|hours?|days?)")
TYPED: Final = ("json", "avro", "protobuf")
_SUBSCRIPTIONS: Final = ("topic", "subscribePattern", "assign")
_OF_THE_PLAN: Final = (*_SUBSCRIPTIONS, "watermark", "identity", "includeHeaders", "fail.on")
"""Settings of a block that are no options of the data source, or not by this name."""


@frozen
class LogRead:
    options: Mapping[str, str]
    """Of the format `logkernel`."""
    watermark: str = ""
    """How late a record may be, by the column timestamp."""


@frozen
class TableRead:
    path: str
    format: str
    schema: str
    """DDL; empty: the files'."""
    options: Mapping[str, str]


@frozen
class View:
    """One of the file's tables; of a log it is the latest value of each key."""

    name: str
    read: LogRead | TableRead


@frozen
class LogWrite:
    options: Mapping[str, str]
    """Of the format `logkernel`."""
    expressions: Mapping[str, str]
    """SQL of the columns key, value, headers, partition, where it is given."""


@frozen
class TableWrite:
    path: str
    format: str
    by: tuple[str, ...]
    """Columns that are folders."""
    options: Mapping[str, str]


@frozen
class Step:
    name: str
    kind: str
    read: LogRead | TableRead
    where: str
    sql: str
    """Over `input` and the views."""
    views: tuple[View, ...]
    write: LogWrite | TableWrite | None
    trigger: str = ""
    """available-now or an interval; streams alone."""
    mode: str = ""
    checkpoint: str = ""
    fail_on: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """For people: what is read, done and written."""
        found = {
            "step": self.name,
            "kind": self.kind,
            "reads": place(self.read),
            "where": self.where,
            "tables": {view.name: place(view.read) for view in self.views},
            "sql": self.sql,
            "writes": "" if self.write is None else place(self.write),
            "columns": dict(self.write.expressions) if isinstance(self.write, LogWrite) else {},
            "trigger": self.trigger,
            "mode": self.mode,
            "checkpoint": self.checkpoint,
            "fail.on": list(self.fail_on),
        }
        return {name: said for name, said in found.items() if said}


def place(found: LogRead | TableRead | LogWrite | TableWrite) -> str:
    """`orders of host:9092`, `parquet out/orders`."""
    if isinstance(found, TableRead | TableWrite):
        by = f" by {', '.join(found.by)}" if isinstance(found, TableWrite) and found.by else ""
        return f"{found.format} {found.path}{by}"
    options = found.options
    names = ("subscribe", "subscribePattern", "assign", "topic")
    topics = next((options[name] for name in names if name in options), "topics by row")
    return f"{topics} of {options.get('kafka.bootstrap.servers') or options.get('path')}"


def plan(spec: Spec, only: Collection[str] = ()) -> tuple[Step, ...]:
    """The steps in the file's order, or those that are named. Raises `ConfigError` with the line of what is wrong."""
    names = [step.name for step in spec.steps]
    for name in only:
        if name not in names:
            raise unknown(RawSetting(name, "", "--only"), names, "step")
    steps = [_step(spec, step) for step in spec.steps]
    return tuple(step for step in steps if not only or step.name in only)


def _step(spec: Spec, found: StepSpec) -> Step:
    given = sorted(name for name in ("read", "audit", "compact") if name in found.blocks)
    if len(given) != 1:
        said = f"not {' and '.join(given)}" if given else "there is none"
        raise found.own.refused("", f"one of read, audit and compact is wanted, {said}")
    makers: Mapping[str, Callable[[Spec, StepSpec], Step]] = {"read": _moving, "audit": _audit, "compact": _compact}
    return makers[given[0]](spec, found)


# ---------------------------------------------------------------- steps


def _moving(spec: Spec, found: StepSpec) -> Step:
    """stream and batch."""
    own, block = found.own, found.blocks["read"]
    if "write" not in found.blocks:
        raise own.refused("", "write is wanted: what is read goes somewhere")
    target = found.blocks["write"]
    of_table, to_table = "table" in block.rows, "table" in target.rows
    if of_table and to_table:
        raise target.refused("table", "a table is read and a table written; one of the two must be a log")
    if of_table:
        for name in ("trigger", "mode"):
            if name in own.rows:
                raise own.refused(name, "it is for streams, and a table is read as a batch")
    where, sql = own.text("where"), own.text("sql").strip().rstrip(";")
    views = _views(spec, sql)
    if of_table:
        read = _table_read(spec, block)
        write = _log_write(spec, target, jobs=found.name)
        return Step(found.name, BATCH, read, where, sql or "SELECT * FROM input", views, write)
    sql = sql or queries.passed(block.text("value.format") in TYPED, to_table)
    source = _log_read(spec, block, where=where, sql=sql)
    mode = own.text("mode", "append")
    if mode not in MODES:
        raise own.refused("mode", f"one of {', '.join(MODES)} is wanted")
    if to_table and mode != "append":
        problem = "a table is appended to; write changes to a topic by key, and `compact` that to a table"
        raise own.refused("mode", problem)
    trigger = own.text("trigger", AVAILABLE)
    if trigger != AVAILABLE and not TRIGGER.fullmatch(trigger):
        raise own.refused("trigger", f"{AVAILABLE} is wanted, or a time such as 10 seconds")
    sink = _table_write(spec, target, ("date",)) if to_table else _log_write(spec, target)
    checkpoint = f"{spec.state.rstrip('/')}/{found.name}"
    return Step(found.name, STREAM, source, where, sql, views, sink, trigger, mode, checkpoint)


def _compact(spec: Spec, found: StepSpec) -> Step:
    _only_blocks(found, "compact", "write")
    if "write" not in found.blocks:
        raise found.own.refused("", "write is wanted: a log or a table")
    block, target = found.blocks["compact"], found.blocks["write"]
    to_table = "table" in target.rows
    typed = block.text("value.format") in TYPED
    more = {} if to_table else {"includeHeaders": "true"}
    read = _log_read(spec, block, more=more, stream=False)
    columns = queries.compacted(typed) if to_table else "key, value, headers"
    sql = f"SELECT {columns} FROM ({queries.latest('input', headers=not to_table)})"
    write = _table_write(spec, target, ()) if to_table else _log_write(spec, target, jobs=found.name)
    return Step(found.name, COMPACT, read, "", sql, (), write)


def _audit(spec: Spec, found: StepSpec) -> Step:
    _only_blocks(found, "audit", "write")
    block = found.blocks["audit"]
    for name in block.rows:
        if name.startswith("value.") or name == "schema.registry.url":
            raise block.refused(name, "an audit looks at bytes; take fields out by `identity`, say")
    headers = block.text("includeHeaders", "false")
    if headers not in ("true", "false"):
        raise block.refused("includeHeaders", "true or false is wanted")
    columns = "key,value,topic,partition,offset,timestamp" + (",headers" if headers == "true" else "")
    read = _log_read(spec, block, more={"columns": columns, "includeHeaders": headers}, stream=False)
    fail_on = tuple(part.strip() for part in block.text("fail.on").split(",") if part.strip())
    for word in fail_on:
        if word not in FAIL_ON:
            raise block.refused("fail.on", f"{word} is not one of {', '.join(FAIL_ON)}")
    write = None
    if "write" in found.blocks:
        target = found.blocks["write"]
        if "table" not in target.rows:
            raise target.refused("topic", "what an audit finds is written as a table: give table and format")
        write = _table_write(spec, target, ())
    sql = queries.audit(block.text("identity"), headers == "true")
    return Step(found.name, AUDIT, read, "", sql, (), write, fail_on=fail_on)


def _only_blocks(found: StepSpec, *names: str) -> None:
    for name, row in found.own.rows.items():
        raise ConfigError(f"{row.where}: {found.own.what}: {name} is for steps that read and write, not for {names[0]}")


# ---------------------------------------------------------------- what is read


def _views(spec: Spec, sql: str) -> tuple[View, ...]:
    """The file's tables that the SQL names."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return tuple(
        View(name, _table_read(spec, block) if "table" in block.rows else _log_read(spec, block, stream=False))
        for name, block in spec.tables.items()
        if name.lower() in words
    )


def _log_read(
    spec: Spec,
    block: Block,
    *,
    where: str = "",
    sql: str = "",
    more: Mapping[str, str] | None = None,
    stream: bool = True,
) -> LogRead:
    """Read from the first record on and what is committed alone, unless the file says otherwise."""
    subscriptions = [name for name in _SUBSCRIPTIONS if name in block.rows]
    if len(subscriptions) != 1:
        problem = "one of topic (several with commas), subscribePattern and assign is wanted, or table"
        raise block.refused(subscriptions[1] if subscriptions else "", problem)
    options = {
        **_place(spec, block),
        "subscribe" if subscriptions[0] == "topic" else subscriptions[0]: block.text(subscriptions[0]),
        **{
            name: row.text
            for name, row in block.rows.items()
            if name not in (*_OF_THE_PLAN, "bootstrap.servers", "path")
        },
    }
    if "kafka.isolation.level" not in options:
        options.setdefault("isolation.level", "read_committed")
    if stream:
        if not {"startingTimestamp", "startingOffsetsByTimestamp"} & options.keys():
            options.setdefault("startingOffsets", "earliest")
        columns = queries.columns(f"{where} {sql}", {"timestamp"} if "watermark" in block.rows else set())
        options["columns"] = ",".join(columns)
        options["includeHeaders"] = str("headers" in columns).lower()
    options.update(more or {})
    _judged(block, options, option.for_stream if stream else option.for_batch)
    if not stream and "watermark" in block.rows:
        raise block.refused("watermark", "it is for streams")
    return LogRead(options, block.text("watermark"))


def _table_read(spec: Spec, block: Block) -> TableRead:
    kind = block.text("format", "parquet")
    if kind not in READABLE:
        raise block.refused("format", f"one of {', '.join(READABLE)} is wanted")
    return TableRead(located(spec.folder, block.text("table")), kind, block.text("schema"), _options(block))


def _options(block: Block) -> dict[str, str]:
    """`option.NAME`: for Spark as it is."""
    names = (name for name in block.rows if name.startswith("option."))
    return {name.removeprefix("option."): block.rows[name].text for name in names}


def _place(spec: Spec, block: Block) -> dict[str, str]:
    """Where the log is: what the block says, else the file's section `log`; `kafka.*` of both."""
    own = {name for name in ("bootstrap.servers", "kafka.bootstrap.servers", "path") if name in block.rows}
    found: dict[str, str] = {}
    for source in (spec.log, block):
        for name, row in source.rows.items():
            where = name in ("bootstrap.servers", "kafka.bootstrap.servers", "path")
            if where and own and source is spec.log:
                continue
            if name == "path":
                paths = (located(spec.folder, part.strip()) for part in row.text.split(",") if part.strip())
                found["path"] = ",".join(paths)
            elif where:
                found["kafka.bootstrap.servers"] = row.text
            elif name.startswith("kafka."):
                found[name] = row.text
    if not found.keys() & {"path", "kafka.bootstrap.servers"}:
        raise block.refused("", "where is the log? Give bootstrap.servers or path, here or in the section `log`")
    return found


def _judged(block: Block, options: Mapping[str, str], judge: Callable[[option.Options], object]) -> None:
    try:
        judge(option.parse(options))
    except ConfigError as error:
        raise ConfigError(f"{block.where}: {block.what}: {error}") from None


# ---------------------------------------------------------------- what is written


def _log_write(spec: Spec, block: Block, jobs: str | None = None) -> LogWrite:
    """`jobs` is the step's name where it is a batch, which is written once under its jobId."""
    place = _place(spec, block)
    if "kafka.bootstrap.servers" in place:
        place.pop("path", None)
    names = ("topic", "partitioner")
    options = {**place, **{name: block.text(name) for name in names if name in block.rows}}
    once = block.text("exactlyOnce", "true")
    if once not in ("true", "false"):
        raise block.refused("exactlyOnce", "true or false is wanted")
    if jobs is None:
        if "jobId" in block.rows:
            raise block.refused("jobId", "it is for batches; a stream's batches have names of their own")
        options["exactlyOnce"] = once
    elif once == "true":
        options["jobId"] = block.text("jobId", f"{spec.name}.{jobs}")
    elif "jobId" in block.rows:
        raise block.refused("jobId", "with exactlyOnce=false nothing is looked up by it")
    _judged(block, options, lambda parsed: parsed)
    columns = ("key", "value", "headers", "partition")
    return LogWrite(options, {name: block.text(name) for name in columns if name in block.rows})


def _table_write(spec: Spec, block: Block, by: Sequence[str]) -> TableWrite:
    kind = block.text("format", "parquet")
    if kind not in FORMATS:
        raise block.refused("format", f"one of {', '.join(FORMATS)} is wanted")
    if "partition.by" in block.rows:
        by = [name.strip() for name in block.text("partition.by").split(",") if name.strip()]
    if "batch" in by:
        raise block.refused("partition.by", "the column batch is the pipeline's own")
    return TableWrite(located(spec.folder, block.text("table")), kind, tuple(by), _options(block))
