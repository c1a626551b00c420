"""Versionless requests and responses: configs."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class DescribeConfigsResource:
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(factory=list)


@mutable
class DescribeConfigsRequest:
    """DescribeConfigsRequest (API key 32), versionless."""

    resources: list[DescribeConfigsResource] = field(factory=list)
    include_synonyms: bool = False
    include_documentation: bool = False


@mutable
class DescribeConfigsSynonym:
    name: str = ""
    value: str | None = None
    source: int = 0


@mutable
class DescribeConfigsResourceResult:
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(factory=list)
    config_type: int = 0
    documentation: str | None = None


@mutable
class DescribeConfigsResult:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(factory=list)


@mutable
class DescribeConfigsResponse:
    """DescribeConfigsResponse (API key 32), versionless."""

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(factory=list)


@mutable
class AlterableConfig:
    name: str = ""
    value: str | None = None


@mutable
class AlterConfigsResource:
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(factory=list)


@mutable
class AlterConfigsRequest:
    """AlterConfigsRequest (API key 33), versionless."""

    resources: list[AlterConfigsResource] = field(factory=list)
    validate_only: bool = False


@mutable
class AlterConfigsResourceResponse:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


@mutable
class AlterConfigsResponse:
    """AlterConfigsResponse (API key 33), versionless."""

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(factory=list)


@mutable
class IncrementalAlterConfigsAlterableConfig:
    name: str = ""
    config_operation: int = 0
    value: str | None = None


@mutable
class IncrementalAlterConfigsAlterConfigsResource:
    resource_type: int = 0
    resource_name: str = ""
    configs: list[IncrementalAlterConfigsAlterableConfig] = field(factory=list)


@mutable
class IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigsRequest (API key 44), versionless."""

    resources: list[IncrementalAlterConfigsAlterConfigsResource] = field(factory=list)
    validate_only: bool = False


@mutable
class IncrementalAlterConfigsAlterConfigsResourceResponse:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


@mutable
class IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigsResponse (API key 44), versionless."""

    throttle_time_ms: int = 0
    responses: list[IncrementalAlterConfigsAlterConfigsResourceResponse] = field(factory=list)


@mutable
class ListConfigResourcesRequest:
    """ListConfigResourcesRequest (API key 74), versionless."""

    resource_types: list[int] = field(factory=list)


@mutable
class ConfigResource:
    resource_name: str = ""
    resource_type: int = 16


@mutable
class ListConfigResourcesResponse:
    """ListConfigResourcesResponse (API key 74), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(factory=list)
