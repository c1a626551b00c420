"""Versionless requests and responses: configs."""

from __future__ import annotations

from logkernel.light import field, message


@message
class DescribeConfigsResource:
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(factory=list)


@message
class DescribeConfigsRequest:
    """DescribeConfigsRequest (API key 32), versionless."""

    resources: list[DescribeConfigsResource] = field(factory=list)
    include_synonyms: bool = False
    include_documentation: bool = False


@message
class DescribeConfigsSynonym:
    name: str = ""
    value: str | None = None
    source: int = 0


@message
class DescribeConfigsResourceResult:
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(factory=list)
    config_type: int = 0
    documentation: str | None = None


@message
class DescribeConfigsResult:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(factory=list)


@message
class DescribeConfigsResponse:
    """DescribeConfigsResponse (API key 32), versionless."""

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(factory=list)


@message
class AlterableConfig:
    name: str = ""
    value: str | None = None


@message
class AlterConfigsResource:
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(factory=list)


@message
class AlterConfigsRequest:
    """AlterConfigsRequest (API key 33), versionless."""

    resources: list[AlterConfigsResource] = field(factory=list)
    validate_only: bool = False


@message
class AlterConfigsResourceResponse:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


@message
class AlterConfigsResponse:
    """AlterConfigsResponse (API key 33), versionless."""

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(factory=list)


@message
class IncrementalAlterConfigsAlterableConfig:
    name: str = ""
    config_operation: int = 0
    value: str | None = None


@message
class IncrementalAlterConfigsAlterConfigsResource:
    resource_type: int = 0
    resource_name: str = ""
    configs: list[IncrementalAlterConfigsAlterableConfig] = field(factory=list)


@message
class IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigsRequest (API key 44), versionless."""

    resources: list[IncrementalAlterConfigsAlterConfigsResource] = field(factory=list)
    validate_only: bool = False


@message
class IncrementalAlterConfigsAlterConfigsResourceResponse:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


@message
class IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigsResponse (API key 44), versionless."""

    throttle_time_ms: int = 0
    responses: list[IncrementalAlterConfigsAlterConfigsResourceResponse] = field(factory=list)


@message
class ListConfigResourcesRequest:
    """ListConfigResourcesRequest (API key 74), versionless."""

    resource_types: list[int] = field(factory=list)


@message
class ConfigResource:
    resource_name: str = ""
    resource_type: int = 16


@message
class ListConfigResourcesResponse:
    """ListConfigResourcesResponse (API key 74), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(factory=list)
