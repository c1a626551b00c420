"""The pytest plugin: brokers for tests as fixtures. It is installed with logkernel, and imports nothing until a fixture
is asked for.

kafka             a broker of the test's own
kafka_session     the test's own topics and groups in a broker that the tests of a worker share
kafka_memory      a broker without sockets, for our own clients
kafka_cluster     several brokers, which a test kills and starts
kafka_async, kafka_session_async, kafka_cluster_async     three of them for tests on an event loop
schema_registry   a schema registry of the test's own

What they are like is said by the marker `kafka`, by the fixture `kafka_options`, which a suite overrides, and by ini
options: `docs/testing.md`. A suite that knows nothing of fixtures has a broker by ini options alone.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from logkernel.testing.kafka.aio import AsyncKafka, AsyncKafkaCluster
    from logkernel.testing.kafka.broker_log import BrokerLog
    from logkernel.testing.kafka.cluster import KafkaCluster
    from logkernel.testing.kafka.kafka import Kafka
    from logkernel.testing.kafka.namespace import KafkaNamespace
    from logkernel.testing.kafka.view import KafkaView
    from logkernel.testing.schema_registry.server import SchemaRegistry

MARKER = (
    "kafka(topics=..., settings=..., plugins=..., as_version=..., faults=..., seed=..., process=..., brokers=...,"
    " security_protocol=..., users=...): what the broker of the fixtures kafka, kafka_memory and kafka_cluster is like;"
    " kafka_session takes topics"
)
MERGED = ("settings", "topics")
"""Options that add to those of an outer marker; the others replace them."""
SERVED = "LOGKERNEL_SUITE_BROKER"
"""Set where a broker runs as long as pytest: workers of xdist inherit it and start none."""
LAST_REQUESTS = 20
"""Shown with a test that fails."""

_broker_log = pytest.StashKey["BrokerLog"]()
_views = pytest.StashKey["list[KafkaView]"]()
_registry = pytest.StashKey["SchemaRegistry"]()
_numbers = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("kafka_settings", "settings of the tests' brokers, NAME=VALUE a line", "linelist", [])
    parser.addini("kafka_topics", "topics of the tests' brokers, NAME or NAME=PARTITIONS a line", "linelist", [])
    parser.addini("kafka_plugins", "plugins of the tests' brokers, modules by their dotted names", "linelist", [])
    parser.addini("kafka_process", "run the tests' brokers in processes of their own", "bool", False)
    parser.addini("kafka_as_version", "the release of Kafka that the tests' brokers look like, 2.8 to 4.3")
    parser.addini("kafka_security_protocol", "how clients connect: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
    parser.addini("kafka_users", "users of the tests' brokers, NAME or NAME=PASSWORD a line", "linelist", [])
    parser.addini(
        "kafka_env",
        "variables for the address of a broker that runs as long as pytest, NAME or NAME=TEXT with {}, {user},"
        " {password} or {ca}",
        "linelist",
        [],
    )
    parser.addini("kafka_listen", "HOST:PORT at which a broker listens that runs as long as pytest")
    parser.addini("kafka_containers", "have testcontainers' KafkaContainer be a LogkernelContainer", "bool", False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """The broker of a suite that asks for no fixture: see `logkernel.testing.suite`."""
    variables, listen = early_config.getini("kafka_env"), early_config.getini("kafka_listen")
    containers = early_config.getini("kafka_containers")
    worker = SERVED in os.environ and "PYTEST_XDIST_WORKER" in os.environ
    serves = (variables or listen) and not worker
    if not (serves or containers):
        return
    from logkernel.errors import ConfigError
    from logkernel.testing.suite import replace_containers, serve

    try:
        if serves:
            options = _placed(_from_ini(early_config), "kafka_settings")
            early_config.add_cleanup(serve([*variables, SERVED], listen, options))
        if containers:
            early_config.add_cleanup(replace_containers())
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


# ---------------------------------------------------------------- options


def _from_ini(config: pytest.Config) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if lines := config.getini("kafka_settings"):
        found["settings"] = dict(_pair(line, "kafka_settings") for line in lines)
    if lines := config.getini("kafka_topics"):
        found["topics"] = {
            name: {} if partitions is None else int(partitions)
            for name, partitions in (_pair(line, "kafka_topics", optional=True) for line in lines)
        }
    if lines := config.getini("kafka_plugins"):
        from importlib import import_module

        found["plugins"] = [import_module(line) for line in lines]
    if config.getini("kafka_process"):
        found["process"] = True
    if protocol := config.getini("kafka_security_protocol"):
        found["security_protocol"] = protocol
    if lines := config.getini("kafka_users"):
        found["users"] = {
            name.strip(): password.strip() for name, _, password in (line.partition("=") for line in lines)
        }
    if version := config.getini("kafka_as_version"):
        found["as_version"] = version
    return found


def _pair(line: str, option: str, *, optional: bool = False) -> tuple[str, str | None]:
    name, equals, value = (part.strip() for part in line.partition("="))
    if not name or not (equals or optional) or (optional and equals and not value.isdecimal()):
        form = "NAME or NAME=PARTITIONS" if optional else "NAME=VALUE"
        raise pytest.UsageError(f"{option}: {line!r} is not of the form {form}; correct that line")
    return name, value if equals else None


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later ones above earlier ones."""
    found: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name in MERGED and name in found:
                value = {**_by_name(found[name]), **_by_name(value)}
            found[name] = value
    return found


def _by_name(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    return {name: {} for name in ([given] if isinstance(given, str) else given)}


def _placed(layer: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The layer, whose settings say where they are written: an error names the place."""
    if "settings" not in layer:
        return layer
    from logkernel.config.sources import from_keywords

    return {**layer, "settings": {row.name: row for row in from_keywords(layer["settings"], where)}}


def _marked(request: pytest.FixtureRequest) -> list[Mapping[str, Any]]:
    """The outermost marker first."""
    marks = list(request.node.iter_markers("kafka"))
    for mark in marks:
        if mark.args:
            raise pytest.UsageError(f"pytest.mark.kafka takes keywords only; write {MARKER.partition(':')[0]}")
    return [mark.kwargs for mark in reversed(marks)]


def _options(request: pytest.FixtureRequest, suite: Mapping[str, Any], *known: str) -> dict[str, Any]:
    found = _merged(
        _placed(_from_ini(request.config), "kafka_settings"),
        _placed(suite, "kafka_options"),
        *(_placed(marked, "pytest.mark.kafka") for marked in _marked(request)),
    )
    if PROCESS not in known:
        found.pop(PROCESS, None)  # it may be for `kafka`, or for other tests
        if _merged(*_marked(request)).get(PROCESS) and "kafka" not in request.fixturenames:
            raise pytest.UsageError(
                f"{request.fixturename}: its brokers run in the test's process; leave out process, or ask for kafka"
            )
    for name in found:
        if name not in known:
            raise pytest.UsageError(
                f"{request.fixturename}: there is no option {name!r}; there are {', '.join(sorted(known))}"
            )
    return found


@pytest.fixture
def kafka_options() -> dict[str, Any]:
    """Options of the brokers of `kafka`, `kafka_memory` and `kafka_cluster`: override it where they differ."""
    return {}


@pytest.fixture(scope="session")
def kafka_session_options() -> dict[str, Any]:
    """Options of the broker behind `kafka_session`: override it where they differ."""
    return {}


# ---------------------------------------------------------------- fixtures

KNOWN = ("as_version", "faults", "plugins", "security_protocol", "seed", "settings", "topics", "users")
PROCESS = "process"


@pytest.fixture
def kafka(request: pytest.FixtureRequest, kafka_options: Mapping[str, Any]) -> Iterator[Kafka]:
    """A broker of the test's own, on a free port: see `logkernel.testing.Kafka`."""
    from logkernel.testing.kafka.kafka import Kafka

    with _logged(request), Kafka(**_options(request, kafka_options, PROCESS, *KNOWN)) as broker:
        _shown(request, broker)
        yield broker


@pytest.fixture
def kafka_memory(request: pytest.FixtureRequest, kafka_options: Mapping[str, Any]) -> Iterator[Kafka]:
    """A broker without sockets: its `producer()`, `consumer()` and `admin()` reach it."""
    from logkernel.testing.kafka.kafka import Kafka

    with _logged(request), Kafka(**_options(request, kafka_options, *KNOWN), sockets=False) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(request: pytest.FixtureRequest, kafka_session_options: Mapping[str, Any]) -> Iterator[Kafka]:
    """The broker behind `kafka_session`: one for each worker of xdist."""
    from logkernel.testing.kafka.kafka import Kafka

    options = _merged(
        _placed(_from_ini(request.config), "kafka_settings"), _placed(kafka_session_options, "kafka_session_options")
    )
    with Kafka(**options) as broker:
        yield broker


@pytest.fixture
def kafka_session(request: pytest.FixtureRequest, kafka_session_broker: Kafka) -> Iterator[KafkaNamespace]:
    """Topics and groups of the test's own in a shared broker: see `KafkaNamespace`."""
    from logkernel.testing.kafka.namespace import KafkaNamespace

    wanted = _merged(*_marked(request))
    if left := wanted.keys() - {"topics"}:
        raise pytest.UsageError(
            f"kafka_session: tests share its broker, so {', '.join(sorted(left))} cannot differ by test;"
            " override kafka_session_options, or ask for kafka"
        )
    with _logged(request), KafkaNamespace(kafka_session_broker, next(_numbers), request.node.name) as namespace:
        _shown(request, namespace)
        namespace.create_topics(wanted.get("topics", ()))
        yield namespace


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest, kafka_options: Mapping[str, Any]) -> Iterator[KafkaCluster]:
    """Three brokers, or as many as the marker says: see `logkernel.testing.KafkaCluster`. Topics have as many
    replicas."""
    from logkernel.testing.kafka.cluster import KafkaCluster

    options = _options(request, kafka_options, "brokers", *KNOWN)
    with _logged(request), KafkaCluster(**options) as cluster:
        _shown(request, cluster)
        yield cluster


@pytest.fixture
def kafka_async(kafka: Kafka) -> AsyncKafka:
    """`kafka` for a test on an event loop: what waits is awaited."""
    from logkernel.testing.kafka.aio import AsyncKafka

    return AsyncKafka(kafka)


@pytest.fixture
def kafka_session_async(kafka_session: KafkaNamespace) -> AsyncKafka:
    """`kafka_session` for a test on an event loop: what waits is awaited."""
    from logkernel.testing.kafka.aio import AsyncKafka

    return AsyncKafka(kafka_session)


@pytest.fixture
def kafka_cluster_async(kafka_cluster: KafkaCluster) -> AsyncKafkaCluster:
    """`kafka_cluster` for a test on an event loop: what waits is awaited."""
    from logkernel.testing.kafka.aio import AsyncKafkaCluster

    return AsyncKafkaCluster(kafka_cluster)


@pytest.fixture
def schema_registry(request: pytest.FixtureRequest) -> Iterator[SchemaRegistry]:
    """A schema registry of the test's own, on a free port: see `logkernel.testing.SchemaRegistry`."""
    from logkernel.testing.schema_registry.server import SchemaRegistry

    with SchemaRegistry() as registry:
        request.node.stash[_registry] = registry
        yield registry


# ---------------------------------------------------------------- the report of a test that fails


def _logged(request: pytest.FixtureRequest) -> BrokerLog:
    """A context in which the log of brokers is kept for the report of this test."""
    from logkernel.testing.kafka.broker_log import BrokerLog

    log = request.node.stash[_broker_log] = BrokerLog()
    return log


def _shown(request: pytest.FixtureRequest, view: KafkaView) -> None:
    """What clients asked of it is shown, too."""
    request.node.stash.setdefault(_views, []).append(view)


def _sections(view: KafkaView) -> Iterator[tuple[str, str]]:
    from logkernel.errors import LogkernelError

    try:
        last = view.requests[-LAST_REQUESTS:]
        yield "what clients asked of Kafka last", "\n".join(map(str, last)) or "nothing"
        if made := view.faults.made:
            yield "faults of Kafka", "\n".join([f"seed={view.faults.seed}", *map(str, made)])
    except LogkernelError as error:  # its process has died
        yield "what clients asked of Kafka last", str(error)
    if text := view.process_log:
        yield "log of the Kafka broker's process", text


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when == "call":
        for view in item.stash.get(_views, []):
            report.sections += _sections(view)
        if _registry in item.stash:
            asked = [f"{one.status} {one.method} {one.path}" for one in item.stash[_registry].requests[-LAST_REQUESTS:]]
            report.sections.append(("what clients asked of the schema registry last", "\n".join(asked) or "nothing"))
    if report.failed and _broker_log in item.stash and (text := item.stash[_broker_log].text):
        report.sections.append(("log of the Kafka broker", text))
    return report
