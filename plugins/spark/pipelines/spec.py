"""A pipeline's file: YAML to `Spec`. Every name is known, every setting keeps its line, every parameter has a value.

    name: nightly
    parameters: {bootstrap: 127.0.0.1:9092, day:}      # `day` must be given
    state: state                                       # where progress is kept
    log: {bootstrap.servers: "${bootstrap}"}
    spark: {master: "local[2]"}
    tables:
      planes: {topic: planes, value.format: json, value.schema: "year INT"}
    steps:
      copy:
        read: {topic: flights}
        sql: SELECT …
        write: {topic: late}

What the settings mean together is `plan`'s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from logkernel.attrs_lite import field, frozen
from logkernel.config.nearest import nearest
from logkernel.config.providers import names_another_place, unknown_provider
from logkernel.config.sources import RawSetting
from logkernel.config.yaml_nodes import compose, empty, pairs, setting
from logkernel.errors import ConfigError
from logkernel.security.settings import is_secret
from logkernel.vocabulary import HIDDEN

from .. import options as option

SECTIONS: Final = ("name", "parameters", "state", "log", "spark", "tables", "steps")
STEP: Final = ("read", "where", "sql", "write", "trigger", "mode", "audit", "compact")
BLOCKS: Final = ("read", "write", "audit", "compact")
"""What of a step has settings of its own."""

PLACE: Final = ("bootstrap.servers", "path", "kafka.*")
_UNASKED: Final = ("subscribe", "columns", "checkpointLocation", "includeHeaders")
"""Options of the data source that the plan sets by itself."""
_READING: Final = tuple(name for name in (*option.READING, *option.OWN) if name not in _UNASKED)
READ_LOG: Final = ("topic", *PLACE, *_READING, "watermark")
READ_TABLE: Final = ("table", "format", "schema", "option.*")
WRITE_LOG: Final = ("topic", "key", "value", "headers", "partition", "exactlyOnce", "jobId", "partitioner", *PLACE)
WRITE_TABLE: Final = ("table", "format", "partition.by", "option.*")
AUDIT: Final = (*READ_LOG, "identity", "includeHeaders", "fail.on")

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
"""What SQL takes as a name without quotes."""
_PARAMETER: Final = re.compile(r"\$\{([^}]*)\}")


@frozen
class Block:
    """One mapping of the file."""

    what: str
    """"step copy: read", for messages."""
    where: str
    rows: Mapping[str, RawSetting] = field(factory=dict)

    def text(self, name: str, default: str = "") -> str:
        return self.rows[name].text if name in self.rows else default

    def refused(self, name: str, problem: str) -> ConfigError:
        """Names the line of the setting, of the block where it is not given."""
        row = self.rows.get(name)
        if row is None:
            return ConfigError(f"{self.where}: {self.what}: {problem}")
        value = HIDDEN if is_secret(name.removeprefix("kafka.")) else shown(row.text)
        return ConfigError(f"{row.where}: {self.what}: {name}={value}: {problem}")


@frozen
class StepSpec:
    name: str
    own: Block
    """where, sql, trigger, mode."""
    blocks: Mapping[str, Block]
    """read, write, audit, compact: what is given of them."""


@frozen
class Spec:
    name: str
    folder: str
    """Where the file lies: relative paths begin there."""
    state: str
    log: Block
    spark: Mapping[str, str]
    tables: Mapping[str, Block]
    steps: tuple[StepSpec, ...]


def load(path: str, given: Mapping[str, str]) -> Spec:
    """Read a file. Raises `ConfigError`, which names file and line."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(f"{path}: it can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    return read(text, path, given)


def read(text: str, file: str, given: Mapping[str, str]) -> Spec:
    """As `load`, of a text; `given` are values of parameters."""
    root = compose(text, file)
    if root is None:
        raise ConfigError(f"{file}: the file is empty; a pipeline has a name and steps")
    sections = {name: (at, node) for name, at, node in pairs(root, file, "the pipeline")}
    for at, _ in sections.values():
        _known(at, SECTIONS, "section of a pipeline")
    values = _Values(file, sections.get("parameters"), given)
    for name in ("name", "steps"):
        if name not in sections:
            raise ConfigError(f"{file}: a pipeline needs `{name}:`")
    named = values.filled(sections["name"][0])  # as it was written: `on` is a name too
    name = named.text
    if not NAME.fullmatch(name):
        raise ConfigError(f"{named.where}: name={shown(name)}: letters, digits, dots, dashes and _ are wanted")
    folder = os.path.dirname(os.path.abspath(file))
    state = values.filled(setting("state", *sections["state"])).text if "state" in sections else f"{name}.state"
    reader = _Reader(file, values)
    log = reader.block(sections["log"], "log", lambda rows: PLACE) if "log" in sections else Block("log", file)
    spark = reader.block(sections["spark"], "spark", None) if "spark" in sections else Block("spark", file)
    settings = {key: row.text for key, row in spark.rows.items()}
    _known_to_spark(spark)
    return Spec(
        name=name,
        folder=folder,
        state=located(folder, state),
        log=log,
        spark=settings,
        tables=dict(reader.tables(sections["tables"])) if "tables" in sections else {},
        steps=tuple(reader.steps(sections["steps"])),
    )


def located(folder: str, path: str) -> str:
    """A path below the file's folder, unless it is absolute or names a file system."""
    return path if "://" in path else os.path.join(folder, path)


def shown(text: str) -> str:
    """A value as a message has it."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "…"


def unknown(at: RawSetting, known: Collection[str], what: str) -> ConfigError:
    near = nearest(at.name, known)
    remedy = f"did you mean {near}?" if near else f"known are {', '.join(sorted(known))}"
    return ConfigError(f"{at.where}: {at.name}: there is no such {what}; {remedy}")


def _known(at: RawSetting, known: Collection[str], what: str) -> None:
    prefixes = tuple(name[:-1] for name in known if name.endswith(".*"))
    if at.name not in known and not (prefixes and at.name.startswith(prefixes)):
        raise unknown(at, known, what)


def _known_to_spark(block: Block) -> None:
    for name, row in block.rows.items():
        if name != "master" and not name.startswith("spark."):
            raise ConfigError(f"{row.where}: {name}: a setting of Spark begins with spark., and there is master")


def _unknown_parameter(at: RawSetting, known: Collection[str], what: str) -> ConfigError:
    if known:
        return unknown(at, known, what)
    return ConfigError(f"{at.where}: {at.name}: there is no such {what}; declare it in `parameters:`")


def _unknown_provider(where: str, provider: str) -> ConfigError:
    """For `${provider:…}`; what follows the colon is not shown."""
    return ConfigError(
        f"{where}: ${{{provider}:…}}: no provider is called {provider}; use ${{env:NAME}}, ${{file:/path:key}} or"
        f" ${{directory:/path:file}}, and have {provider} set that variable or write that file"
    )


class _Values:
    """The parameters of a file, and what they are this time."""

    def __init__(self, file: str, section: Any, given: Mapping[str, str]) -> None:
        found: dict[str, str | None] = {}
        for name, at, node in pairs(section[1], file, "parameters") if section is not None else ():
            found[name] = None if empty(node) else setting(name, at, node).text
        for name in given:
            if name not in found:
                raise _unknown_parameter(RawSetting(name, given[name], "--set"), found, f"parameter in {file}")
        self._values = {**found, **given}

    def filled(self, row: RawSetting) -> RawSetting:
        if names_another_place(row.text) and not row.name.startswith("kafka."):
            raise ConfigError(
                f"{row.where}: {row.name}: values of the environment or of a file are for settings kafka.*; use a"
                " parameter, and --set"
            )

        def value_of(match: re.Match[str]) -> str:
            name = match[1]
            if names_another_place(match[0]):
                return match[0]  # read where the log is opened, so that no plan has it
            if name not in self._values:
                if (provider := unknown_provider(match[0])) is not None:
                    raise _unknown_provider(row.where, provider)
                raise _unknown_parameter(RawSetting(name, "", row.where), self._values, "parameter")
            found = self._values[name]
            if found is None:
                raise ConfigError(f"{row.where}: the parameter {name} has no value; give it by --set {name}=…")
            return found

        return row._replace(text=_PARAMETER.sub(value_of, row.text))


class _Reader:
    def __init__(self, file: str, values: _Values) -> None:
        self._file = file
        self._values = values

    def block(self, found: Any, what: str, known: Callable[[Collection[str]], Collection[str]] | None) -> Block:
        """`known` says by the names that are given which may be; None: any."""
        at, node = found
        rows = {
            name: self._values.filled(setting(name, given, node)) for name, given, node in pairs(node, self._file, what)
        }
        if known is not None:
            for row in rows.values():
                _known(row, known(rows), f"setting of {what}")
        return Block(what, at.where, rows)

    def tables(self, found: Any) -> list[tuple[str, Block]]:
        tables = []
        for name, at, node in pairs(found[1], self._file, "tables"):
            if not WORD.fullmatch(name) or name.lower() == "input":
                raise ConfigError(
                    f"{at.where}: table {name}: a name that SQL takes as it is is wanted, but not `input`"
                )
            tables.append((name, self.block((at, node), f"table {name}", _reading)))
        return tables

    def steps(self, found: Any) -> list[StepSpec]:
        steps = []
        for name, at, node in pairs(found[1], self._file, "steps"):
            if not NAME.fullmatch(name):
                raise ConfigError(f"{at.where}: step {name}: letters, digits, dots, dashes and _ are wanted")
            steps.append(self._step(name, at, node))
        if not steps:
            raise ConfigError(f"{found[0].where}: there is no step")
        return steps

    def _step(self, name: str, at: RawSetting, node: Any) -> StepSpec:
        rows: dict[str, RawSetting] = {}
        blocks: dict[str, Block] = {}
        for key, given, inner in pairs(node, self._file, f"step {name}"):
            _known(given, STEP, "setting of a step")
            if key in BLOCKS:
                blocks[key] = self.block((given, inner), f"step {name}: {key}", _KNOWN[key])
            else:
                rows[key] = self._values.filled(setting(key, given, inner))
        return StepSpec(name, Block(f"step {name}", at.where, rows), blocks)


def _reading(rows: Collection[str]) -> Collection[str]:
    return READ_TABLE if "table" in rows else READ_LOG


def _writing(rows: Collection[str]) -> Collection[str]:
    return WRITE_TABLE if "table" in rows else WRITE_LOG


_KNOWN: Final[Mapping[str, Callable[[Collection[str]], Collection[str]]]] = {
    "read": _reading,
    "write": _writing,
    "audit": lambda rows: AUDIT,
    "compact": lambda rows: READ_LOG,
}
