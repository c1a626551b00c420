"""ApiVersions (key 18), versions 0-4: what this listener answers, and the broker's feature levels.

- Answered by the transport itself from `BrokerDoor.serves()`, `commands()` and `features()`.
- The response header is v0 at every version, so that a client can read the answer to a version it guessed.
- A version above 4 is answered in v0 form with UNSUPPORTED_VERSION and the list (KIP-511).
- v3 and later: the client's name and version must look like names, else INVALID_REQUEST.
- v3 lacks the features whose lowest level is 0; old clients choke on them (KAFKA-17492). v4 has them.
- Gap: `zk_migration_ready` is never set.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from logkernel.errors import InvalidRequest
from logkernel.requests.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

from ..api import Api, DecodeBody, EncodeBody, Row
from ..wire import I16, I32, I64, Cursor, Part, put_length, put_string, put_tagged, put_uvarint

_ROW: Final = Struct(">hhh")
_LEVELS: Final = Struct(">hh")


class ApiVersions(Api):
    def request_decoder(self, version: int) -> DecodeBody:
        return _decode_software if version >= 3 else lambda body: ApiVersionsRequest()

    def response_encoder(self, version: int) -> EncodeBody:
        def encode(response: ApiVersionsResponse) -> list[Part]:
            return [_encode(version, response)]

        return encode


def answer(
    version: int,
    request: ApiVersionsRequest,
    rows: list[Row],
    features: Mapping[str, tuple[int, int, int]],
    features_epoch: int,
) -> ApiVersionsResponse:
    """The response of a listener that serves `rows`; `features` as `BrokerDoor.features` gives them."""
    if version >= 3 and not (_is_name(request.client_software_name) and _is_name(request.client_software_version)):
        return ApiVersionsResponse(error_code=InvalidRequest.code)
    response = listing(rows)
    response.finalized_features_epoch = features_epoch
    for name, (low, high, level) in sorted(features.items()):
        if low > 0 or version >= 4:
            response.supported_features.append(SupportedFeatureKey(name, low, high))
        if level > 0:
            response.finalized_features.append(FinalizedFeatureKey(name, level, level))
    return response


def _is_name(text: str) -> bool:
    """ASCII letters and digits, between them `-` and `.`, too."""
    inner = text.replace("-", "").replace(".", "")
    return text.isascii() and inner.isalnum() and text[0].isalnum() and text[-1].isalnum()


def listing(rows: list[Row], error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code, api_keys=[ApiVersion(row.key, row.min_version, row.max_version) for row in rows]
    )


def _decode_software(body: memoryview) -> ApiVersionsRequest:
    cursor = Cursor(body)
    request = ApiVersionsRequest(cursor.string(True), cursor.string(True))
    cursor.skip_tags()
    return request


def _encode(version: int, response: ApiVersionsResponse) -> bytearray:
    flexible = version >= 3
    out = bytearray(I16.pack(response.error_code))
    put_length(out, len(response.api_keys), flexible)
    for row in response.api_keys:
        out += _ROW.pack(row.api_key, row.min_version, row.max_version)
        if flexible:
            out.append(0)
    if version >= 1:
        out += I32.pack(response.throttle_time_ms)
    if flexible:
        put_tagged(out, _tags(response))
    return out


def _tags(response: ApiVersionsResponse) -> list[tuple[int, bytes | bytearray]]:
    tags: list[tuple[int, bytes | bytearray]] = []
    if response.supported_features:
        tags.append((0, _levels([(f.name, f.min_version, f.max_version) for f in response.supported_features])))
    if response.finalized_features_epoch != -1:
        tags.append((1, I64.pack(response.finalized_features_epoch)))
    if response.finalized_features:
        rows: list[Any] = [(f.name, f.max_version_level, f.min_version_level) for f in response.finalized_features]
        tags.append((2, _levels(rows)))
    if response.zk_migration_ready:
        tags.append((3, b"\x01"))
    return tags


def _levels(rows: list[tuple[str, int, int]]) -> bytearray:
    out = bytearray()
    put_uvarint(out, len(rows) + 1)
    for name, first, second in rows:
        put_string(out, name, True)
        out += _LEVELS.pack(first, second)
        out.append(0)
    return out
