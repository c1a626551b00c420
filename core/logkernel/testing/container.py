"""`LogkernelContainer`: a tested broker with the calls of testcontainers' `KafkaContainer` and `RedpandaContainer`.

A suite moves over by one import. There is no container, and no Docker.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from logkernel.errors import ConfigError, LogkernelError
from logkernel.testing.kafka.kafka import Kafka

if TYPE_CHECKING:
    from logkernel.testing.schema_registry.server import SchemaRegistry

KAFKA_PORT: Final = 9093
REDPANDA_PORT: Final = 9092
REGISTRY_PORT: Final = 8081
PREFIX: Final = "KAFKA_"
LAYOUT: Final = (
    "listeners", "advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name",
    "controller.listener.names", "controller.quorum.voters", "process.roles", "zookeeper.connect",
)  # fmt: skip
"""Settings by which an image lays itself out; here `listen` and `advertised` do."""
JAVA: Final = ("heap.opts", "opts", "jvm.performance.opts", "gc.log.opts")
IMAGES: Final = ("jmx.", "log4j.", "tools.log4j", "confluent.", "cluster.id", "kraft.cluster.id", "enable.kraft")
"""What images read that is no setting of Kafka, or how its names begin: of Java, of Confluent, of Bitnami."""
ASIDE: Final = ("CLUSTER_ID", "ALLOW_PLAINTEXT_LISTENER")
"""The same without the prefix."""
NO_EFFECT: Final = ("name", "hostname", "listener_name", "wait_strategy_check_string")
"""What testcontainers' constructors take, and what means nothing without a container."""
REMEDIES: Final = {
    "exec": "there is no container to run a program in; use kafka.create_topic() and the like, or logkernel's commands",
    "get_wrapped_container": "there is no container; kafka.pid is the broker's process, kafka.kill() kills it",
    "get_docker_client": "there is no Docker",
    "with_network": "there is no network of containers; for clients in a container pass listen='0.0.0.0:0' and"
    " advertised='host.docker.internal:0'",
    "with_network_aliases": "there is no network of containers; pass advertised='NAME:0'",
    "with_volume_mapping": "there is no volume; pass path=DIR",
    "with_copy_into_container": "there is no container; pass settings=, or with_env()",
    "copy_into_container": "there is no container; pass settings=, or with_env()",
    "copy_from_container": "there is no container; pass path=DIR and look there",
    "with_command": "there is no command; pass settings=, or with_env()",
    "with_kwargs": "these are Docker's; leave them out",
    "with_tmpfs_mount": "the data are in memory or in a temporary folder anyhow; leave it out",
    "with_cluster_id": "the broker makes its id; leave it out",
}
"""What testcontainers has and this has not → why, and what to do."""


class LogkernelContainer:
    """A broker that `start` starts. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        image: str = "",
        port: int = KAFKA_PORT,
        *,
        env: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        process: bool = True,
        **options: Any,
    ) -> None:
        """`image` is taken and does nothing: pass `as_version` for a release of Kafka. `get_exposed_port` knows the
        broker's port by the number `port`.

        `settings` and the other options are those of `Kafka`; it has a process of its own, as a container has, if you
        do not say otherwise. `name`, `hostname`, `listener_name` and `wait_strategy_check_string` are taken and do
        nothing. Raises `ConfigError` for what only Docker could do.
        """
        self.image = image
        self.port = port
        self.kraft_enabled = False
        self.redpanda_port, self.schema_registry_port = REDPANDA_PORT, REGISTRY_PORT
        self.env: dict[str, str] = {}
        self._settings = dict(settings or {})
        options = {name: value for name, value in options.items() if name not in NO_EFFECT}
        self._options = {"process": process, **options}
        self._ports = {port, KAFKA_PORT, REDPANDA_PORT}
        self._bound: dict[int, int] = {}
        self._kafka: Kafka | None = None
        self._registry: SchemaRegistry | None = None
        for name in options:
            if f"with_{name}" in REMEDIES:
                raise ConfigError(f"{name}={options[name]!r}: {REMEDIES[f'with_{name}']}")
            if name not in OPTIONS:
                raise ConfigError(f"{name}={options[name]!r} is no option; there are {', '.join(sorted(OPTIONS))}")
        self.with_envs(**(env or {}))

    def __getattr__(self, name: str) -> Any:
        """What testcontainers has, and this has not."""
        if name in REMEDIES:
            raise AttributeError(f"LogkernelContainer has no {name}: {REMEDIES[name]}")
        raise AttributeError(f"LogkernelContainer has no {name}; .kafka has what a test can do with the broker")

    # ------------------------------------------------------------ before it starts

    def with_env(self, key: str, value: Any) -> Self:
        """KAFKA_NUM_PARTITIONS=3 is the setting num.partitions, as in Kafka's images, and so is
        KAFKA_CFG_NUM_PARTITIONS. Raises `ConfigError` for a variable that is no setting."""
        setting_of(key, str(value))
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: Any) -> Self:
        """Several of `with_env`."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_env_file(self, env_file: str | PathLike[str]) -> Self:
        """A file with NAME=VALUE lines, for `with_env`. Raises `OSError`."""
        with open(env_file, encoding="utf-8") as file:
            for line in file:
                text = line.strip()
                if text and not text.startswith("#"):
                    key, _, value = text.removeprefix("export ").partition("=")
                    self.with_env(key.strip(), value.strip().strip("'\""))
        return self

    def with_kraft(self) -> Self:
        """Nothing but `kraft_enabled`: the broker needs no ZooKeeper anyhow."""
        self.kraft_enabled = True
        return self

    def with_name(self, name: str) -> Self:
        """Nothing: there is no container to name."""
        return self

    def maybe_emulate_amd64(self) -> Self:
        """Nothing: there is no image."""
        return self

    def waiting_for(self, strategy: object) -> Self:
        """Nothing: `start` returns when clients can connect."""
        return self

    def with_exposed_ports(self, *ports: str | int) -> Self:
        """Have `get_exposed_port` know the broker's port by these numbers, too."""
        self._ports.update(map(_number, ports))
        return self

    def with_bind_ports(self, container: str | int, host: str | int | None = None) -> Self:
        """Listen on the port `host` of this machine; of the schema registry, if `container` is its port."""
        number = _number(container)
        if number != REGISTRY_PORT:
            self._ports.add(number)
        if host is not None:
            self._bound[number] = _number(host)
        return self

    # ------------------------------------------------------------ life

    def start(self, timeout: float = 0) -> Self:
        """Start the broker; it is ready when this returns. `timeout` is taken and does nothing. Raises as `Kafka`."""
        if self._kafka is None:
            options = dict(self._options)
            bound = [port for number, port in self._bound.items() if number != REGISTRY_PORT]
            if bound:
                options.setdefault("listen", f"127.0.0.1:{bound[-1]}")
            found = [setting_of(key, value) for key, value in self.env.items()]
            self._kafka = Kafka(settings={**dict(filter(None, found)), **self._settings}, **options)
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """End the broker, and forget its data. A second call does nothing."""
        kafka, self._kafka = self._kafka, None
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.close()
        if kafka is not None:
            kafka.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # ------------------------------------------------------------ while it runs

    @property
    def kafka(self) -> Kafka:
        """The broker: its records, requests, time and faults. Raises `LogkernelError` before `start`."""
        if self._kafka is None:
            raise LogkernelError("this broker does not run; call start(), or use it as a context manager")
        return self._kafka

    @property
    def status(self) -> str:
        """ "running", or "exited" after `kafka.kill` or `kafka.stop`; "not_started" otherwise."""
        if self._kafka is None:
            return "not_started"
        return "running" if self._kafka.running else "exited"

    def get_bootstrap_server(self) -> str:
        """ "host:port", for clients of any kind."""
        return self.kafka.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """The host of `get_bootstrap_server`."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: str | int) -> int:
        """The port on this machine for one of the container's: the broker's, or the schema registry's (8081). Raises
        `ConfigError` for another one."""
        number = _number(port)
        if number == REGISTRY_PORT:
            return urlsplit(self.get_schema_registry_address()).port or 0
        if number not in self._ports:
            known = ", ".join(map(str, sorted(self._ports)))
            raise ConfigError(f"{number} is no port here; the broker is {known}, the schema registry {REGISTRY_PORT}")
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_schema_registry_address(self) -> str:
        """ "http://host:port" of a schema registry, which is started at the first call."""
        if self._registry is None:
            from logkernel.testing.schema_registry.server import SchemaRegistry

            self.get_bootstrap_server()  # it runs
            self._registry = SchemaRegistry(port=self._bound.get(REGISTRY_PORT, 0))
        return self._registry.url

    def get_logs(self) -> tuple[bytes, bytes]:
        """What its process wrote to stdout (nothing) and to stderr."""
        return b"", self.kafka.process_log.encode()

    def reload(self) -> None:
        """Nothing: `status` is never old."""


OPTIONS: Final = (
    "topics",
    "plugins",
    "path",
    "listen",
    "advertised",
    "as_version",
    "seed",
    "faults",
    "ahead_ms",
    "security_protocol",
    "users",
    "security_folder",
)


def setting_of(key: str, value: str) -> tuple[str, str] | None:
    """The setting that an environment variable of Kafka's images is; None for one that means nothing without the image.
    Raises `ConfigError` for a variable of another kind. Pure."""
    if not key.startswith(PREFIX):
        if key in ASIDE:
            return None
        raise ConfigError(f"{key}={value}: only {PREFIX}… are settings of the broker; leave it out")
    words = key.removeprefix(PREFIX).removeprefix("CFG_").lower()
    name = words.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
    if name in ("listeners", "listener.security.protocol.map") and ("SASL" in value or "SSL" in value):
        raise ConfigError(f"{key}={value}: pass security_protocol='SASL_SSL' and users= instead of listeners")
    if name in LAYOUT or name in JAVA or name.startswith(IMAGES):
        return None
    return name, value


def _number(port: str | int) -> int:
    """Docker writes "8080/tcp", too."""
    text = str(port).partition("/")[0]
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise ConfigError(f"{port!r} is no port; pass a number, e.g. {KAFKA_PORT}")
    return int(text)
