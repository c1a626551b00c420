"""JSON as schemas are written in it: strict, and printed without blanks."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from logkernel.testing.schema_registry.contract import InvalidSchema


def loaded(text: str) -> Any:
    """Raises `InvalidSchema`."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError as error:
        raise InvalidSchema(f"not JSON: {error}") from error


def dumped(value: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text[:20]} is too large")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
