"""`logkernel plugin check`: run the contract kits on a plugin, in a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree

import click
from attrs import frozen

from logkernel.cli.connection import pairs
from logkernel.cli.installed_plugins import KINDS_TOLD, installed, module_of, plain_kind
from logkernel.cli.output import json_option, put_json
from logkernel.cli.parameters import IntRange
from logkernel.cli.plugin_hangs import VARIABLE, CallWatch
from logkernel.errors import ConfigError, InvalidConfig, LogkernelError, PluginError

KEPT, BROKEN, SKIPPED = "kept", "broken", "not tested"


@frozen
class Promise:
    """What became of one promise of a kit."""

    kind: str
    name: str
    promise: str
    result: str
    """`KEPT`, `BROKEN` or `SKIPPED`."""
    why: str = ""


@click.command(epilog=KINDS_TOLD)
@click.argument("kind_or_module")
@click.argument("name", required=False)
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="Give the plugin a setting.")
@click.option("--effort", type=IntRange(1), default=1, show_default=True, help="Try so many times as many examples.")
@json_option
def check(kind_or_module: str, name: str | None, given: tuple[str, ...], effort: int, as_json: bool) -> int:
    """Check that a plugin keeps its contract: an installed one by KIND and NAME, or all that a MODULE provides.

    Runs the suites of logkernel.testing.contracts (docs/plugins), which need pytest and hypothesis. Exit code 1: a
    promise is broken; what it says names the promise and the smallest example that breaks it. A call that does not
    return within seconds is named on stderr.
    """
    with CallWatch(lambda text: click.echo(text, err=True)):
        if name is None:
            module = module_of(kind_or_module)
            suites = _provided_by(module)
        else:
            module = None
            suites = [(plain_kind(kind_or_module), name)]
            _check_installed(*suites[0])
    found = run(suites, pairs(given), module=kind_or_module if module is not None else None, effort=effort)
    for row in found:
        if as_json:
            put_json({"kind": row.kind, "name": row.name, "promise": row.promise, "result": row.result, "why": row.why})
        else:
            _put(row)
    broken = sum(row.result == BROKEN for row in found)
    if not as_json:
        kept, skipped = (sum(row.result == result for row in found) for result in (KEPT, SKIPPED))
        click.echo(f"{kept} promises kept, {broken} broken, {skipped} not tested")
    return int(broken > 0)


def _provided_by(module: Any) -> list[tuple[str, str]]:
    from logkernel.kernel import Kernel

    everything = [row.point.name for row in installed(allow=())]
    kernel = Kernel(allow=(), block=everything, plugins=[module])
    found = [row for declared in kernel.declarations() for row in declared.names]
    if not found:
        raise PluginError(f"{module.__name__} provides nothing: its logkernel_names is missing or empty; implement it")
    return found


def _check_installed(kind: str, name: str) -> None:
    from logkernel.config.nearest import nearest
    from logkernel.hookspecs import KINDS
    from logkernel.kernel import Kernel

    if kind not in KINDS:
        near = nearest(kind, KINDS)
        raise PluginError(f"{kind}: no such kind of plugins; {_hint(near, KINDS)}")
    known = Kernel().names(kind)
    if name not in known:
        raise PluginError(f"no plugin provides the {kind} {name!r}; {_hint(nearest(name, known), known)}")


def _hint(near: str | None, known: Iterable[str]) -> str:
    return f"did you mean {near!r}?" if near else f"use one of {', '.join(known) or 'none'}"


def _check_settings(plugins: Sequence[object], settings: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a setting of topics or brokers that is misspelt, or does not take its value."""
    from logkernel.config.nearest import nearest
    from logkernel.testing.contracts import Kit

    kit: Kit[Any] = type("Suite", (Kit,), {"plugins": plugins})()
    known = kit.config.definitions
    for name in settings:
        if name not in known.topic and name not in known.broker:
            near = nearest(name, [*known.topic, *known.broker])
            hint = f"did you mean {near!r}?" if near else "`logkernel plugin info` names those of a plugin"
            raise ConfigError(f"--set {name}: no such setting of topics or brokers; {hint}")
    try:
        kit.config.validate_topic({name: value for name, value in settings.items() if name in known.topic})
    except InvalidConfig as error:
        raise ConfigError(f"--set: {error}") from None


def run(
    suites: Iterable[tuple[str, str]], settings: Mapping[str, str], *, module: str | None = None, effort: int = 1
) -> list[Promise]:
    """Run the kit of each (kind, name). Raises `LogkernelError` where there is no kit, or pytest fails by itself."""
    try:
        from logkernel.testing.contracts import kits

        known = kits()
    except ImportError as error:
        raise PluginError(str(error)) from error
    wanted, found = [], []
    for kind, name in suites:
        if kind in known:
            wanted.append((kind, name))
        elif module is not None:
            found.append(Promise(kind, name, "its kind has no contract kit", SKIPPED, "test it yourself"))
        else:
            raise PluginError(f"the {kind} {name!r} cannot be checked: its kind has no contract kit; test it yourself")
    if not wanted:
        return found
    if settings:
        _check_settings([] if module is None else [module_of(module)], settings)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lines = ["from importlib import import_module", "from logkernel.testing import contracts", ""]
        for number, (kind, name) in enumerate(wanted):
            lines += [
                f"class Test{number}(contracts.{known[kind].__name__}):",
                f"    name = {name!r}",
                f"    effort = {effort}",
                f"    plugins = (import_module({module!r}),)" if module else "",
                f"    settings = {dict(settings)!r}",
            ]
        (folder / "test_contract.py").write_text("\n".join(lines) + "\n")
        (folder / "pytest.ini").write_text("[pytest]\n")
        report = folder / "report.xml"
        tells = os.dup(sys.__stderr__.fileno()) if sys.__stderr__ is not None else os.open(os.devnull, os.O_WRONLY)
        environment = {"HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"), VARIABLE: str(tells)}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-c", str(folder / "pytest.ini"), "-p", "no:cacheprovider",
                 "-p", "logkernel.cli.plugin_hangs", f"--junitxml={report}", str(folder)],
                env={**os.environ, **environment},
                capture_output=True, text=True, stdin=subprocess.DEVNULL, pass_fds=(tells,),
            )  # fmt: skip
        finally:
            os.close(tells)
        if done.returncode not in (0, 1) or not report.exists():
            raise LogkernelError(f"pytest cannot run the contract kits:\n{done.stdout}{done.stderr}")
        return found + [_promise(case, wanted) for case in ElementTree.parse(report).iter("testcase")]


def _promise(case: ElementTree.Element, suites: list[tuple[str, str]]) -> Promise:
    kind, name = suites[int(case.attrib["classname"].rpartition("Test")[2])]
    promise = case.attrib["name"].removeprefix("test_").replace("_", " ")
    for tag, result in (("failure", BROKEN), ("error", BROKEN), ("skipped", SKIPPED)):
        found = case.find(tag)
        if found is not None:
            return Promise(kind, name, promise, result, _why(found, result))
    return Promise(kind, name, promise, KEPT)


def _why(found: ElementTree.Element, result: str) -> str:
    message = found.attrib.get("message", "")
    if result == SKIPPED:
        return message
    first = message.partition("\n")[0]
    told = [line[1:] for line in (found.text or "").splitlines() if line.startswith("E ")]
    begins = [number for number, line in enumerate(told) if line.strip() == first]
    if begins:  # pytest shortens the message, not the report
        message = dedent("\n".join(told[begins[-1] :]))
    return message.partition("ContractBroken: ")[2] or message


def _put(row: Promise) -> None:
    mark = {KEPT: "ok     ", BROKEN: "BROKEN ", SKIPPED: "skipped"}[row.result]
    click.echo(f"{mark} {row.kind} {row.name}: {row.promise}")
    for line in row.why.splitlines() if row.result != KEPT else ():
        click.echo(f"          {line}")
