"""What goes over the control port, as JSON. Pure.

| in JSON | what it is |
|---|---|
| `"text"` | text, or bytes that are UTF-8 |
| `{"$base64": "…"}` | other bytes |
| null | no key; a tombstone |
| anything else, where a record is written | its JSON, as bytes |

Where a record is expected, `{"$regex": "…"}` is text in which the pattern is found, and `{"$containing": {…}}` an
object with these fields and maybe more; both may stand within other objects and lists. Other names with a `$` are
refused, as they are likely misspelt: `{"$json": …}` is JSON in which nothing is looked for.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from logkernel.config.nearest import nearest
from logkernel.errors import ConfigError
from logkernel.testing.kafka.faults import Fault
from logkernel.testing.kafka.matching import containing
from logkernel.testing.kafka.records import KafkaRecord
from logkernel.testing.kafka.requests import ClientRequest

BASE64, REGEX, CONTAINING, JSON = "$base64", "$regex", "$containing", "$json"
MAX_PATTERN: Final = 10_000
"""Characters."""


# ---------------------------------------------------------------- out


def plain(value: Any) -> Any:
    """Any value of a request or an answer as JSON has it; objects of attrs are objects."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(bytes(value))
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    import attrs

    return {each.name: plain(getattr(value, each.name)) for each in attrs.fields(type(value))}


def _bytes(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(data).decode()}


def record_row(record: KafkaRecord) -> dict[str, Any]:
    row: dict[str, Any] = plain(record)
    return row


def request_row(number: int, request: ClientRequest) -> dict[str, Any]:
    """`number` counts all requests of this process."""
    row = {each: getattr(request, each) for each in REQUEST_FIELDS}
    kind = type(request.request)
    return {"number": number, **row, "type": f"{kind.__module__}.{kind.__qualname__}", "fields": plain(request.request)}


REQUEST_FIELDS: Final = (
    "api",
    "version",
    "client_id",
    "software",
    "connection",
    "correlation_id",
    "at_ms",
    "broker",
    "principal",
)


def fault_row(number: int, fault: Fault, *, active: bool) -> dict[str, Any]:
    return {
        "id": number,
        "fault": str(fault),
        "kind": fault.kind,
        "fitted": fault.fitted,
        "struck": fault.struck,
        "active": active,
    }


# ---------------------------------------------------------------- in


def written(given: Any) -> Any:
    """A key, value or header that a record is to have, in the form that `KafkaView.produce` takes. Raises
    `ConfigError`."""
    name = _sign(given, BASE64, JSON)
    if name == BASE64:
        return _from_base64(given[BASE64])
    return given if name is None else json.dumps(_plain_json(given[JSON]), separators=(",", ":")).encode()


def expected(given: Any) -> Any:
    """What a key, value or header is compared with, in the form that `matching` takes. Raises `ConfigError`."""
    if isinstance(given, list):
        return [expected(each) for each in given]
    if not isinstance(given, dict):
        return given
    name = _sign(given, BASE64, REGEX, CONTAINING, JSON)
    if name is None:
        return {name: expected(each) for name, each in given.items()}
    if name == CONTAINING:
        fields = given[CONTAINING]
        if not isinstance(fields, dict):
            raise ConfigError(f"{CONTAINING} is {fields!r}; write an object with the fields that must be there")
        return containing({name: expected(each) for name, each in fields.items()})
    return {BASE64: _from_base64, REGEX: pattern, JSON: _plain_json}[name](given[name])


def _sign(given: Any, *known: str) -> str | None:
    """The name with a `$` of an object that is a sign; None for any other value. Raises `ConfigError` for one that
    means nothing, or stands beside others."""
    names = [name for name in given if name.startswith("$")] if isinstance(given, dict) else []
    if not names:
        return None
    name: str = names[0]
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}."
        raise ConfigError(f'{name} means nothing here; {hint} For JSON with such a name write {{"{JSON}": …}}')
    if len(given) > 1:
        raise ConfigError(
            f'{name} stands beside other names; write {{"{name}": …}} alone, or {{"{JSON}": …}} around all'
        )
    return name


def _plain_json(given: Any) -> Any:
    if not isinstance(given, (dict, list)):
        raise ConfigError(f"{JSON} is {given!r}; write an object or a list, and any other value without it")
    return given


def pattern(given: Any) -> re.Pattern[str]:
    """Raises `ConfigError`."""
    if not isinstance(given, str) or len(given) > MAX_PATTERN:
        raise ConfigError(f"{REGEX} is no text of up to {MAX_PATTERN} characters; write Python's regular expressions")
    try:
        return re.compile(given)
    except re.error as error:
        raise ConfigError(f"{REGEX} {given!r} is no pattern: {error}; write Python's regular expressions") from None


def _from_base64(given: Any) -> bytes:
    try:
        return base64.b64decode(given, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ConfigError(f"{BASE64} is not base64: {error}; encode the bytes with padding") from None
