"""A WSGI application that answers Confluent's requests from a `Registry`.

Subjects and versions are segments of the path as they were sent, so that a subject may have a slash in it (`%2F`).
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from logkernel.testing.schema_registry import errors
from logkernel.testing.schema_registry.catalog import Config, Registered
from logkernel.testing.schema_registry.compatibility import Level
from logkernel.testing.schema_registry.contract import Reference, Schema
from logkernel.testing.schema_registry.errors import RegistryError
from logkernel.testing.schema_registry.registry import LATEST, MAX_ID, Registry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
ACCEPTS_UNKNOWN: Final = "HTTP_CONFLUENT_ACCEPT_UNKNOWN_PROPERTIES"
SCHEMA_FIELDS: Final = ("schema", "schemaType", "references", "metadata", "ruleSet", "version", "id", "subject", "guid")
CONFIG_FIELDS: Final = ("compatibility", "normalize")
REQUESTS_KEPT: Final = 10_000
KEPT_CHARACTERS: Final = 2_000

log = logging.getLogger("logkernel.schema_registry")


class Asked(NamedTuple):
    """A request that was answered. `path` is with its query; it and `authorization` are cut at `KEPT_CHARACTERS`."""

    method: str
    path: str
    status: int
    authorization: str | None


class RawText(str):
    """An answer that is sent as it is: a schema alone."""


class App:
    """Requests are answered one at a time."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.lock = threading.RLock()
        self.asked: deque[Asked] = deque(maxlen=REQUESTS_KEPT)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        try:
            status, value = 200, self._answer(environ)
        except RegistryError as error:
            status, value = error.status, {"error_code": error.code, "message": error.message}
        except Exception:
            log.exception("%s %r failed", method, target)
            status, value = 500, {"error_code": 500, "message": "Internal Server Error; the registry's log says why"}
        said = environ.get("HTTP_AUTHORIZATION")
        self.asked.append(Asked(method, target[:KEPT_CHARACTERS], status, said and said[:KEPT_CHARACTERS]))
        body = value if isinstance(value, RawText) else json.dumps(value, separators=(",", ":"))
        return Response(body, status, content_type=CONTENT_TYPE)(environ, start_response)

    def _answer(self, environ: WSGIEnvironment) -> Any:
        path, _, query = environ["RAW_URI"].partition("?")
        request = _Request(environ, query)
        try:
            segments = [unquote(one, errors="strict") for one in path.strip("/").split("/") if one]
        except UnicodeDecodeError:
            raise errors.unprocessable("the path is not UTF-8") from None
        with self.lock:
            match segments:
                case []:
                    return {}
                case ["subjects", *rest]:
                    return self._subjects(request, rest)
                case ["schemas", *rest]:
                    return self._schemas(request, rest)
                case ["config", *rest] if len(rest) < 2:
                    return self._config(request, rest[0] if rest else None)
                case ["mode", *rest] if len(rest) < 2:
                    return self._mode(request, rest[0] if rest else None)
                case ["compatibility", "subjects", subject, "versions", *rest] if len(rest) < 2:
                    return self._compatibility(request, subject, _version(rest[0]) if rest else None)
                case ["contexts"]:
                    return ["."]
        raise request.unknown()

    # ---------------------------------------------------------------- subjects

    def _subjects(self, request: _Request, rest: Sequence[str]) -> Any:
        registry, deleted, permanent = self.registry, request.flag("deleted"), request.flag("permanent")
        only = request.flag("deletedOnly") or request.flag("deleted_only")
        match request.method, rest:
            case "GET", []:
                return request.page(registry.subjects(request.prefix(), deleted=deleted, deleted_only=only))
            case "POST", [subject]:
                found = registry.lookup(subject, request.schema(), normalize=request.flag("normalize"), deleted=deleted)
                return self._shown(found, request)
            case "DELETE", [subject]:
                return registry.delete_subject(subject, permanent=permanent)
            case "GET", [subject, "metadata"]:
                return self._shown(registry.with_metadata(subject, request.pairs(), deleted=deleted), request)
            case "GET", [subject, "versions"]:
                return request.page(registry.versions(subject, deleted=deleted, deleted_only=only))
            case "POST", [subject, "versions"]:
                return self._register(subject, request)
            case "GET", [subject, "versions", version]:
                return self._shown(registry.version(subject, _version(version), deleted=deleted), request)
            case "GET", [subject, "versions", version, "schema"]:
                found = registry.version(subject, _version(version), deleted=deleted)
                return RawText(registry.formatted(found, request.text("format")))
            case "GET", [subject, "versions", version, "referencedby"]:
                return request.page(registry.referenced_by(subject, _version(version), deleted=deleted))
            case "DELETE", [subject, "versions", version]:
                return registry.delete_version(subject, _version(version), permanent=permanent)
        raise request.unknown()

    def _register(self, subject: str, request: _Request) -> Any:
        body = request.body(SCHEMA_FIELDS)
        found = self.registry.register(
            subject, _schema(body), normalize=request.flag("normalize"),
            version=_number(body, "version"), id=_number(body, "id"),
        )  # fmt: skip
        # without the text: clients would take it for the one that they have sent, whatever its form
        return {"id": found.id, "version": found.version, "guid": found.schema.guid}

    # ---------------------------------------------------------------- schemas

    def _schemas(self, request: _Request, rest: Sequence[str]) -> Any:
        registry, deleted = self.registry, request.flag("deleted")
        subject = request.text("subject") or None
        match request.method, rest:
            case "GET", ["types"]:
                return registry.types
            case "GET", []:
                return request.page([self._shown(one, request) for one in self._all(request, deleted)])
            case "GET", ["ids", number]:
                found = self._without_place(registry.by_id(_id(number), subject), request, subject)
                return found | ({"maxId": registry.catalog.last_id} if request.flag("fetchMaxId") else {})
            case "GET", ["ids", number, "schema"]:
                return RawText(registry.formatted(registry.by_id(_id(number), subject), request.text("format")))
            case "GET", ["ids", number, "subjects"]:
                places = registry.places(_id(number), subject, deleted=deleted)
                return request.page(sorted({one.subject for one in places}))
            case "GET", ["ids", number, "versions"]:
                places = registry.places(_id(number), subject, deleted=deleted)
                return request.page([{"subject": one.subject, "version": one.version} for one in places])
            case "GET", ["guids", guid]:
                return self._without_place(registry.by_guid(guid), request, None)
            case "GET", ["guids", guid, "ids"]:
                return [{"context": ".", "id": registry.by_guid(guid).id}]
        raise request.unknown()

    def _all(self, request: _Request, deleted: bool) -> Iterable[Registered]:
        latest = request.flag("latestOnly")
        for name in self.registry.subjects(request.prefix(), deleted=deleted):
            versions = self.registry.catalog.versions(name, deleted=deleted)
            yield from versions[-1:] if latest else versions

    def _shown(self, registered: Registered, request: _Request) -> dict[str, Any]:
        """As JSON. What is Confluent's default is left out: the type AVRO, no references."""
        schema = registered.schema
        found: dict[str, Any] = {
            "subject": registered.subject, "version": registered.version, "id": registered.id, "guid": schema.guid,
            **schema.unusual(),
        }  # fmt: skip
        if registered.deleted:
            found["deleted"] = True
        return found | {"schema": self.registry.formatted(registered, request.text("format"))}

    def _without_place(self, registered: Registered, request: _Request, subject: str | None) -> dict[str, Any]:
        """A schema by its id: with its subject and version only if it was asked for by a subject."""
        found = self._shown(registered, request)
        hidden = ("id", "deleted") if subject else ("id", "deleted", "subject", "version")
        return {name: value for name, value in found.items() if name not in hidden}

    # ---------------------------------------------------------------- settings

    def _compatibility(self, request: _Request, subject: str, version: int | None) -> Any:
        if request.method != "POST":
            raise request.unknown()
        verbose = request.flag("verbose")
        try:
            reasons = self.registry.check(subject, request.schema(), version, normalize=request.flag("normalize"))
        except RegistryError as error:
            if not (verbose and error.code == 42201):
                raise
            reasons = [error.message]
        return {"is_compatible": not reasons} | ({"messages": reasons} if verbose else {})

    def _config(self, request: _Request, subject: str | None) -> Any:
        match request.method:
            case "GET":
                config = self.registry.config(subject, scope=request.flag("defaultToGlobal"))
                return _config_shown(config, "compatibilityLevel")
            case "PUT":
                return _config_shown(self.registry.set_config(subject, request.config()), "compatibility")
            case "DELETE":
                return _config_shown(self.registry.delete_config(subject), "compatibilityLevel")
        raise request.unknown()

    def _mode(self, request: _Request, subject: str | None) -> Any:
        match request.method:
            case "GET":
                return {"mode": self.registry.mode(subject, scope=request.flag("defaultToGlobal"))}
            case "PUT":
                mode = request.body(("mode",)).get("mode")
                if not isinstance(mode, str):
                    raise errors.invalid_mode()
                return {"mode": self.registry.set_mode(subject, mode.upper(), force=request.flag("force"))}
            case "DELETE":
                return {"mode": self.registry.delete_mode(subject)}
        raise request.unknown()


def unread(refusal: HTTPException) -> Response:
    """The answer to a request whose body was not read, such as one that is too large."""
    status = refusal.code or 400
    body = json.dumps({"error_code": status, "message": f"HTTP {status} {refusal.name}"})
    return Response(body, status, content_type=CONTENT_TYPE)


class _Request:
    def __init__(self, environ: WSGIEnvironment, query: str) -> None:
        self.method = environ["REQUEST_METHOD"]
        self._environ = environ
        self._pairs = parse_qsl(query, keep_blank_values=True)
        self._query = dict(self._pairs)

    def unknown(self) -> RegistryError:
        return RegistryError(404, f"HTTP 404 Not Found: {self.method} {self._environ['RAW_URI'][:200]}")

    def text(self, name: str) -> str:
        return self._query.get(name, "")

    def prefix(self) -> str:
        """Of subjects; `:*:` before it is Confluent's for every context."""
        return self.text("subjectPrefix").removeprefix(":*:")

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def pairs(self) -> dict[str, str]:
        """The properties of metadata, which are asked for by key=…&value=…, quoted twice."""
        keys, values = ([unquote(value) for name, value in self._pairs if name == which] for which in ("key", "value"))
        return dict(zip(keys, values, strict=False))

    def page(self, rows: list[Any]) -> list[Any]:
        try:
            offset, limit = int(self.text("offset") or 0), int(self.text("limit") or -1)
        except ValueError:
            raise errors.unprocessable("offset and limit are numbers") from None
        rows = rows[max(offset, 0) :]
        return rows if limit < 0 else rows[:limit]

    def body(self, known: Sequence[str]) -> dict[str, Any]:
        """A JSON object with these fields. Others are refused, unless the client says that it minds none."""
        try:
            found = json.loads(self._environ["wsgi.input"].read())
        except (ValueError, RecursionError):
            raise RegistryError(400, "the body is not JSON") from None
        if not isinstance(found, dict):
            raise errors.unprocessable("the body is not a JSON object")
        unknown = sorted(found.keys() - set(known))
        if unknown and self._environ.get(ACCEPTS_UNKNOWN, "").lower() != "true":
            raise errors.unprocessable(f"Unrecognized field: {unknown[0][:100]}; there are {', '.join(known)}")
        return found

    def schema(self) -> Schema:
        return _schema(self.body(SCHEMA_FIELDS))

    def config(self) -> Config:
        body = self.body(CONFIG_FIELDS)
        level, normalize = body.get("compatibility"), body.get("normalize")
        if level is not None and (not isinstance(level, str) or level.upper() not in Level.__members__):
            raise errors.invalid_compatibility()
        if normalize is not None and not isinstance(normalize, bool):
            raise errors.unprocessable("normalize is true or false")
        return Config(Level[level.upper()] if level is not None else None, normalize)


def _config_shown(config: Config, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if config.compatibility is not None:
        found[name] = config.compatibility.name
    if config.normalize is not None:
        found["normalize"] = config.normalize
    return found


def _version(text: str) -> int:
    if text == "latest" or text == "-1":
        return LATEST
    if not (text.isdecimal() and text.isascii() and len(text) < 11 and 0 < int(text) <= MAX_ID):
        raise errors.invalid_version(text[:100])
    return int(text)


def _id(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 11):
        raise RegistryError(404, f"HTTP 404 Not Found: {text[:100]} is no schema id")
    return int(text)


def _number(body: Mapping[str, Any], name: str) -> int | None:
    """A number that may be left out; clients send 0 or -1 for none."""
    value = body.get(name)
    if value is None or value in (0, -1):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_ID:
        raise errors.unprocessable(f"{name} is a number from 1 to {MAX_ID}")
    return value


def _schema(body: Mapping[str, Any]) -> Schema:
    text, kind = body.get("schema"), body.get("schemaType") or "AVRO"
    if not isinstance(text, str):
        raise errors.invalid_schema("Empty schema: the field schema is a text")
    if not isinstance(kind, str):
        raise errors.unprocessable("schemaType is a text")
    rows = body.get("references")
    if rows is None:
        rows = []
    elif not isinstance(rows, list):
        raise errors.unprocessable("references are a list")
    metadata, rule_set = (_object(body, name) for name in ("metadata", "ruleSet"))
    return Schema(kind, text, tuple(map(_reference, rows)), metadata, rule_set)


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise errors.unprocessable(f"{name} is an object")
    if name == "metadata" and value is not None and not isinstance(value.get("properties") or {}, dict):
        raise errors.unprocessable("metadata.properties is an object")
    return value


def _reference(row: Any) -> Reference:
    match row:
        case {"name": str(name), "subject": str(subject), "version": int(version)} if not isinstance(version, bool):
            if version == LATEST or 0 < version <= MAX_ID:
                return Reference(name, subject, version)
    raise errors.unprocessable("a reference has a name, a subject and a version")
