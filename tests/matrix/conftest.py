"""Takes the plugins of a test from the environment, lends it brokers, and reports what each combination came to.

| `LOGKERNEL_MATRIX` | each test runs |
|---|---|
| `clean-zstd-tcp-compact-keyed` | once, with these plugins |
| `full` | with every combination of the factors that it touches |
| `pairwise` | with the combinations that cover every pair, where they differ for it |
| not set | as `pairwise`, without a report; what needs sockets is left to `--rest` |

A test is touched by a factor whose fixture it takes, by itself or through another fixture: `election`, `codec`,
`transport`, `cleanup`, `partitioner`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import plugin_matrix
import pytest
import zookeepers
from brokers_by_transport import Brokers, InProcess, OverZooKeeper
from matrix_report import report
from outside_tools import missing
from plugin_matrix import FACTORS, Combination

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # tests import their helpers
VARIABLE = "LOGKERNEL_MATRIX"


def chosen() -> list[Combination]:
    try:
        return plugin_matrix.chosen(os.environ.get(VARIABLE, ""))
    except ValueError as error:
        raise pytest.UsageError(f"{VARIABLE}: {error}") from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    factors = [factor for factor in FACTORS if factor in metafunc.fixturenames]
    if not factors:
        return
    only = {
        name: values for mark in metafunc.definition.iter_markers("plugins") for name, values in mark.kwargs.items()
    }
    rows = plugin_matrix.projected(chosen(), factors, only)
    later = "transport" in factors and VARIABLE not in os.environ
    params = [
        pytest.param(*row, id="-".join(row), marks=[pytest.mark.long] if later and "memory" not in row else [])
        for row in rows
    ]
    metafunc.parametrize(factors, params or [pytest.param(*[None] * len(factors), id="not-touched")])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what no chosen plugin touches, and have reports say what their tests ran with, in other processes,
    too."""
    left = []
    for item in items:
        if item.path.is_relative_to(HERE) and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            plugins = {factor: item.callspec.params[factor] for factor in FACTORS if factor in item.callspec.params}
            item.user_properties.append(("plugins", plugins))
            if None in plugins.values():
                left.append(item)
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get(VARIABLE):
        runs = [
            each for group in terminalreporter.stats.values() for each in group if isinstance(each, pytest.TestReport)
        ]
        terminalreporter.section("combinations of plugins")
        for line in report(chosen(), runs):
            terminalreporter.write_line(line)


# ------------------------------------------------------------ brokers


@pytest.fixture(scope="session")
def opened(
    tmp_path_factory: pytest.TempPathFactory, start_session_broker: Callable[..., object]
) -> Iterator[Callable[[str], Brokers]]:
    """The brokers over a transport, which tests share: opened at the first call."""
    found: dict[str, Brokers] = {}

    def open_(transport: str) -> Brokers:
        if transport not in found:
            folder = tmp_path_factory.mktemp(transport)
            if transport == "zookeeper":
                why = zookeepers.absent()
                if why is not None:
                    missing(why)
                server = stack.enter_context(zookeepers.zookeeper(folder))
                found[transport] = OverZooKeeper(f"zookeeper://{server.address}/matrix", start_session_broker, stack)
            else:
                found[transport] = InProcess(folder, stack, sockets=transport == "tcp")
        return found[transport]

    with ExitStack() as stack:
        yield open_


def lend(brokers: Brokers) -> Iterator[Brokers]:
    """All of them run when a test begins, and no other test's topic is there."""
    brokers.settle()
    yield brokers
    brokers.forget_topics()


@pytest.fixture
def brokers(transport: str, opened: Callable[[str], Brokers]) -> Iterator[Brokers]:
    """Three brokers over the transport."""
    yield from lend(opened(transport))


@pytest.fixture
def memory(opened: Callable[[str], Brokers]) -> Iterator[Brokers]:
    """Three brokers in memory, for a test that no transport touches."""
    yield from lend(opened("memory"))


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "." for letter in request.node.name)
