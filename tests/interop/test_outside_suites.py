"""Public projects' own suites, which start Kafka in a container elsewhere: `docs/outside-suites.md`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from outside_suites import OutsideSuite
from outside_tools import missing

pytestmark = [pytest.mark.interop, pytest.mark.long]

BY_ENVIRONMENT = OutsideSuite(
    "taskiq-aio-kafka",
    "1.0.0",
    ("taskiq==0.13.0", "kafka-python==2.3.3", "aiokafka==0.14.0", "anyio==4.16.0"),
    ("-o", "kafka_env=TEST_KAFKA_URL", "tests"),
)
BY_CONTAINER = OutsideSuite(
    "kaskade",
    "5.1.0",
    ("testcontainers==4.15.0", "faker"),
    # the others start a schema registry and Apicurio in containers, too
    ("-o", "kafka_containers=true", "tests/e2e/tests_e2e.py", "-k", "not registry and not apicurio"),
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("suite", "tests"), [(BY_ENVIRONMENT, 12), (BY_CONTAINER, 3)], ids=["by-environment", "by-container"]
)
def test_it_passes_as_it_is(suite: OutsideSuite, tests: int, tmp_path: Path) -> None:
    try:
        suite.fetch()
    except (subprocess.SubprocessError, OSError) as error:
        missing(f"{suite.project} {suite.version} cannot be fetched: {error}")
    done = suite.run(tmp_path / "report.xml")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    (found,) = ElementTree.parse(tmp_path / "report.xml").getroot().iter("testsuite")
    assert {name: found.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": str(tests), "failures": "0", "errors": "0", "skipped": "0",
    }  # fmt: skip
