"""What kio says of a field by its metadata."""

from typing import Any, Final

BOOL: Final = {"kafka_type": "bool"}
INT8: Final = {"kafka_type": "int8"}
INT16: Final = {"kafka_type": "int16"}
INT32: Final = {"kafka_type": "int32"}
INT64: Final = {"kafka_type": "int64"}
STRING: Final = {"kafka_type": "string"}
UUID: Final = {"kafka_type": "uuid"}
ERROR_CODE: Final = {"kafka_type": "error_code"}


def tagged(kind: dict[str, str], tag: int) -> dict[str, Any]:
    return {**kind, "tag": tag}
