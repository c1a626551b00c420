"""`SchemaRegistry`: a registry that listens, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from logkernel.testing.http_server import HttpServer
from logkernel.testing.schema_registry.app import App, Asked, unread
from logkernel.testing.schema_registry.catalog import Config, Registered
from logkernel.testing.schema_registry.compatibility import Level
from logkernel.testing.schema_registry.contract import Reference, Schema, SchemaFormat
from logkernel.testing.schema_registry.errors import invalid_compatibility
from logkernel.testing.schema_registry.registry import LATEST, Registry

__all__ = ["Reference", "Registered", "Schema", "SchemaRegistry"]


class SchemaRegistry:
    """A schema registry in memory. It listens at `url` from its construction until `close`, and is a context manager.

    Its methods do what the requests of clients do, and raise `RegistryError` where these are refused.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        compatibility: str = "BACKWARD",
        formats: Mapping[str, SchemaFormat] | None = None,
        bootstrap_servers: str | None = None,
        client_settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Port 0 takes a free one. `compatibility` is the level of subjects that have none of their own.

        `formats` are further formats of schemas, by name. With `bootstrap_servers`, schemas are kept in the topic
        `_schemas` of that cluster, from which the next registry reads them; `client_settings` are keywords of
        `logkernel.connect`, e.g. for TLS and SASL. Raises `CannotListen`, `ConfigError`.
        """
        level = _level(compatibility)
        with ExitStack() as opened:
            if bootstrap_servers is None:
                registry = Registry(formats, compatibility=level)
            else:
                from logkernel.testing.schema_registry.topic import SchemasTopic

                topic = SchemasTopic(bootstrap_servers, **(client_settings or {}))
                opened.callback(topic.close)
                registry = Registry(formats, compatibility=level, catalog=topic.load(), keep=topic.keep)
            self._app = App(registry)
            server = HttpServer(self._app, host, port, refused=unread)
            opened.callback(server.close)
            self._opened = opened.pop_all()
        self.url = server.url

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> SchemaRegistry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def clear(self) -> None:
        """Forget every schema, config and mode; ids begin at 1 again."""
        with self._app.lock:
            self._app.registry.clear()

    @property
    def requests(self) -> list[Asked]:
        """What clients asked, the oldest first: (method, path, status, authorization). The newest 10,000 are kept."""
        return list(self._app.asked)

    def register(
        self,
        subject: str,
        schema: str | Mapping[str, Any] | list[Any],
        schema_type: str = "AVRO",
        references: Iterable[tuple[str, str, int]] = (),
    ) -> int:
        """Register a schema and return its id. A dict or list is sent as JSON; references are (name, subject, version).

        Raises `RegistryError`.
        """
        text = schema if isinstance(schema, str) else json.dumps(schema)
        with self._app.lock:
            found = Schema(schema_type, text, tuple(Reference(*one) for one in references))
            return self._app.registry.register(subject, found).id

    def subjects(self) -> list[str]:
        with self._app.lock:
            return self._app.registry.subjects()

    def versions(self, subject: str) -> list[int]:
        """Raises `RegistryError`."""
        with self._app.lock:
            return self._app.registry.versions(subject)

    def version(self, subject: str, version: int = LATEST) -> Registered:
        """A version with its `id` and `schema`; the newest, unless it is said which. Raises `RegistryError`."""
        with self._app.lock:
            return self._app.registry.version(subject, version)

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Of a subject, or of all that have no level of their own. Raises `RegistryError`."""
        with self._app.lock:
            self._app.registry.set_config(subject, Config(_level(level)))


def _level(name: str) -> Level:
    try:
        return Level[name.upper()]
    except KeyError:
        raise invalid_compatibility() from None
