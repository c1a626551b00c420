"""Does a test notice where a client's setting is ignored? A mark `setting` says that it does; this tries.

python tests/scenarios/client/ignoring.py                 every setting, a run of its marked tests each: minutes
python tests/scenarios/client/ignoring.py linger.ms acks  these

Loaded by `pytest -p ignoring` with IGNORED in the environment, it drops that setting after it was checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from logkernel.client.settings import consumer as consumer_settings
from logkernel.client.settings import producer as producer_settings
from logkernel.security.client_table import CLIENT_SECURITY

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ONE_VALUE = {"enable.metrics.push", "transaction.two.phase.commit.enable"}
"""To ignore these changes nothing; that other values are refused is shown."""
IGNORED = os.environ.get("IGNORED")


def ignoring(load: Callable[..., dict[str, Any]], name: str) -> Callable[..., dict[str, Any]]:
    """`load`, whose settings have the default where they have `name`."""
    usual = load({})

    def loaded(given: Mapping[str, Any]) -> dict[str, Any]:
        values = load(given)
        return {**values, name: usual[name]} if name in values else values

    return loaded


if IGNORED is not None and __name__ != "__main__":
    producer_settings.load_producer = ignoring(producer_settings.load_producer, IGNORED)
    consumer_settings.load_consumer = ignoring(consumer_settings.load_consumer, IGNORED)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if any(IGNORED in mark.args for mark in item.iter_markers("setting"))]


def noticed(name: str) -> bool:
    files = [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.setting(" in path.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "ignoring", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "IGNORED": name, "PYTHONPATH": str(HERE)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True).returncode == 1


if __name__ == "__main__":
    known = {setting.name for setting in (*producer_settings.PRODUCER, *consumer_settings.CONSUMER)} - ONE_VALUE
    known -= {setting.name for setting in CLIENT_SECURITY}  # tests/unit/security has them
    missed = [name for name in sys.argv[1:] or sorted(known) if not noticed(name)]
    print("\n".join(missed) or "every one is noticed")
    sys.exit(bool(missed))
