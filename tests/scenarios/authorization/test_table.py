"""Every request that a broker answers has a guard, and a broker without an authorizer has none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from logkernel.broker.authorization.gate import Gate
from logkernel.broker.authorization.table import GUARDS, guard_of
from logkernel.broker.build import build
from logkernel.broker.router import COMMANDS
from logkernel.contracts import ServiceDeclaration
from logkernel.errors import ClusterAuthorizationFailed
from logkernel.hookspecs import hookimpl
from logkernel.requests.cluster import MetadataRequest
from logkernel.requests.offsets import ListOffsetsRequest
from logkernel.requests.repeated import ONCE


def test_every_request_that_a_broker_serves_has_a_row(world: Any) -> None:
    """A request without one would be refused to everybody, super users included."""
    served = world.broker.serves() | COMMANDS
    assert sorted(served - set(GUARDS)) == [], "say in broker/authorization/table.py what it needs"
    assert sorted(set(GUARDS) - served) == [], "nobody answers it"


@pytest.mark.parametrize("request_name", GUARDS)
def test_each_row_names_a_guard(request_name: str) -> None:
    assert callable(guard_of(request_name))


class Odd:
    """A request that the core does not know."""


class Service:
    @hookimpl
    def logkernel_services(self) -> Iterator[ServiceDeclaration]:
        yield ServiceDeclaration("odd", ("Odd",))


def test_a_request_without_a_row_is_refused(start: Callable[..., Any]) -> None:
    world = start(plugins=(Service(),))
    world.broker.router.refusal = lambda name, request, error: error
    assert isinstance(world.ask("root", Odd()), ClusterAuthorizationFailed)


def test_a_broker_without_an_authorizer_has_the_handlers_themselves() -> None:
    broker = build(None, (), in_memory=True)
    broker.start()
    try:
        for name in (ListOffsetsRequest.__name__, MetadataRequest.__name__, "HeartbeatRequest"):
            assert not isinstance(getattr(broker.router.find(name), "__self__", None), Gate)
    finally:
        broker.close()


def test_a_broker_with_one_has_a_gate_before_each(world: Any) -> None:
    """`requests.repeated` alone stands before it, where a request names things."""
    for name in sorted(world.broker.serves()):
        found = world.broker.router.find(name)
        behind = found.args[-1] if name in ONCE else found
        assert isinstance(behind.__self__, Gate)


def test_a_broker_without_an_authorizer_does_not_import_the_rules(tmp_path: Path) -> None:
    program = (
        "import sys, logkernel\n"
        f"with logkernel.open({str(tmp_path)!r}) as log:\n"
        "    log.create_topic('t')\n"
        "    log.append('t', b'v')\n"
        "print([name for name in sys.modules if 'authorization' in name or 'authorizers.rules' in name])\n"
    )
    found = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
