"""Versionless requests and responses: api_versions. Alone, as it is what a client asks first."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class ApiVersionsRequest:
    """ApiVersionsRequest (API key 18), versionless."""

    client_software_name: str = ""
    client_software_version: str = ""


@mutable
class ApiVersion:
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@mutable
class SupportedFeatureKey:
    name: str = ""
    min_version: int = 0
    max_version: int = 0


@mutable
class FinalizedFeatureKey:
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


@mutable
class ApiVersionsResponse:
    """ApiVersionsResponse (API key 18), versionless."""

    error_code: int = 0
    api_keys: list[ApiVersion] = field(factory=list)
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = field(factory=list)
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = field(factory=list)
    zk_migration_ready: bool = False
