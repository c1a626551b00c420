"""A schema registry as a reader needs it: plain HTTP GETs, and the frame before each value.

    0        1                 5                                  bytes
    ┌────────┬─────────────────┬──────────────────────────────────
    │ 0      │ schema id, u32  │ protobuf: indexes; then the value
    └────────┴─────────────────┴──────────────────────────────────

A name and password may stand in the URL. Source: the wire format and the API of Confluent's registry.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from logkernel.attrs_lite import frozen
from logkernel.errors import ConfigError, LogkernelError

FRAME_BYTES: Final = 5
TIMEOUT_S: Final = 10.0
LARGEST_BYTES: Final = 16 << 20


class SchemaUnavailable(LogkernelError):
    """The registry does not answer, or not with the schema that was asked for."""


class Unframed(ValueError):
    """A value does not begin with a schema's id."""


class OtherKind(ConfigError):
    """A schema is of another format than `value.format`."""


@frozen
class Schema:
    """`kind` is AVRO, JSON or PROTOBUF; `references` are (name, subject, version) of what it imports."""

    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()


def unframed(data: bytes) -> tuple[int, bytes]:
    """(schema id, the rest). Raises `Unframed`."""
    if len(data) < FRAME_BYTES or data[0] != 0:
        raise Unframed(f"{len(data)} bytes from {data[:FRAME_BYTES].hex()} do not begin with a schema's id")
    return int.from_bytes(data[1:FRAME_BYTES], "big"), data[FRAME_BYTES:]


@lru_cache(maxsize=1024)
def by_id(url: str, schema_id: int) -> Schema:
    """A schema never changes, so it is asked for once a process. Raises `SchemaUnavailable`."""
    return _schema(_get(url, f"/schemas/ids/{schema_id}"))


@lru_cache(maxsize=1024)
def serialized(url: str, place: str) -> Schema:
    """A protobuf schema as a `FileDescriptorProto` in base64; `place` is "/schemas/ids/7" or a subject's version."""
    return _schema(_get(url, f"{place}?format=serialized"))


def version(subject: str, number: int | str) -> str:
    """The place of a subject's version; "latest" is one."""
    return f"/subjects/{quote(subject, safe='')}/versions/{number}"


def latest(url: str, subject: str) -> tuple[int, Schema]:
    """(id, schema) of the newest version of a subject. Raises `SchemaUnavailable`."""
    answer = _get(url, version(subject, "latest"))
    number = answer.get("id")
    if not isinstance(number, int):
        raise SchemaUnavailable(f"{url}: subject {subject!r} has no schema id")
    return number, _schema(answer)


def _schema(answer: dict[str, Any]) -> Schema:
    text = answer.get("schema")
    if not isinstance(text, str):
        raise SchemaUnavailable("the registry's answer has no schema")
    references = tuple((row["name"], row["subject"], int(row["version"])) for row in answer.get("references") or ())
    return Schema(answer.get("schemaType") or "AVRO", text, references)


def _get(url: str, place: str) -> dict[str, Any]:
    from urllib.request import Request, urlopen  # with all of HTTP and TLS: half of what a worker imports of ours

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"schema.registry.url={url!r} is not an http or https URL")
    host = parts.netloc.rpartition("@")[2]
    request = Request(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")) + place)
    request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            data = answer.read(LARGEST_BYTES + 1)
        found = json.loads(data) if len(data) <= LARGEST_BYTES else None
    except (OSError, ValueError) as error:
        raise SchemaUnavailable(f"http://{host}{place}: {error}") from error
    if not isinstance(found, dict):
        raise SchemaUnavailable(f"http://{host}{place} did not answer with a schema")
    return found
