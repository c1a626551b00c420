"""Versionless requests and responses: ACLs, SCRAM users, client quotas, SASL, delegation tokens."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class DescribeAclsRequest:
    """DescribeAclsRequest (API key 29), versionless."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int = 0
    permission_type: int = 0


@mutable
class AclDescription:
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@mutable
class DescribeAclsResource:
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = field(factory=list)


@mutable
class DescribeAclsResponse:
    """DescribeAclsResponse (API key 29), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    resources: list[DescribeAclsResource] = field(factory=list)


@mutable
class AclCreation:
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@mutable
class CreateAclsRequest:
    """CreateAclsRequest (API key 30), versionless."""

    creations: list[AclCreation] = field(factory=list)


@mutable
class AclCreationResult:
    error_code: int = 0
    error_message: str | None = None


@mutable
class CreateAclsResponse:
    """CreateAclsResponse (API key 30), versionless."""

    throttle_time_ms: int = 0
    results: list[AclCreationResult] = field(factory=list)


@mutable
class DeleteAclsFilter:
    resource_type_filter: int = 0
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int = 0
    permission_type: int = 0


@mutable
class DeleteAclsRequest:
    """DeleteAclsRequest (API key 31), versionless."""

    filters: list[DeleteAclsFilter] = field(factory=list)


@mutable
class DeleteAclsMatchingAcl:
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@mutable
class DeleteAclsFilterResult:
    error_code: int = 0
    error_message: str | None = None
    matching_acls: list[DeleteAclsMatchingAcl] = field(factory=list)


@mutable
class DeleteAclsResponse:
    """DeleteAclsResponse (API key 31), versionless."""

    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = field(factory=list)


@mutable
class ComponentData:
    entity_type: str = ""
    match_type: int = 0
    match: str | None = None


@mutable
class DescribeClientQuotasRequest:
    """DescribeClientQuotasRequest (API key 48), versionless."""

    components: list[ComponentData] = field(factory=list)
    strict: bool = False


@mutable
class EntityData:
    entity_type: str = ""
    entity_name: str | None = None


@mutable
class ValueData:
    key: str = ""
    value: float = 0.0


@mutable
class EntryData:
    entity: list[EntityData] = field(factory=list)
    values: list[ValueData] = field(factory=list)


@mutable
class DescribeClientQuotasResponse:
    """DescribeClientQuotasResponse (API key 48), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    entries: list[EntryData] | None = field(factory=list)


@mutable
class AlterClientQuotasRequestEntryDataEntityData:
    entity_type: str = ""
    entity_name: str | None = None


@mutable
class OpData:
    key: str = ""
    value: float = 0.0
    remove: bool = False


@mutable
class AlterClientQuotasRequestEntryData:
    entity: list[AlterClientQuotasRequestEntryDataEntityData] = field(factory=list)
    ops: list[OpData] = field(factory=list)


@mutable
class AlterClientQuotasRequest:
    """AlterClientQuotasRequest (API key 49), versionless."""

    entries: list[AlterClientQuotasRequestEntryData] = field(factory=list)
    validate_only: bool = False


@mutable
class AlterClientQuotasResponseEntryDataEntityData:
    entity_type: str = ""
    entity_name: str | None = None


@mutable
class AlterClientQuotasResponseEntryData:
    error_code: int = 0
    error_message: str | None = None
    entity: list[AlterClientQuotasResponseEntryDataEntityData] = field(factory=list)


@mutable
class AlterClientQuotasResponse:
    """AlterClientQuotasResponse (API key 49), versionless."""

    throttle_time_ms: int = 0
    entries: list[AlterClientQuotasResponseEntryData] = field(factory=list)


@mutable
class UserName:
    name: str = ""


@mutable
class DescribeUserScramCredentialsRequest:
    """DescribeUserScramCredentialsRequest (API key 50), versionless."""

    users: list[UserName] | None = None


@mutable
class CredentialInfo:
    mechanism: int = 0
    iterations: int = 0


@mutable
class DescribeUserScramCredentialsResult:
    user: str = ""
    error_code: int = 0
    error_message: str | None = None
    credential_infos: list[CredentialInfo] = field(factory=list)


@mutable
class DescribeUserScramCredentialsResponse:
    """DescribeUserScramCredentialsResponse (API key 50), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult] = field(factory=list)


@mutable
class ScramCredentialDeletion:
    name: str = ""
    mechanism: int = 0


@mutable
class ScramCredentialUpsertion:
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = field(default=b"", repr=False)


@mutable
class AlterUserScramCredentialsRequest:
    """AlterUserScramCredentialsRequest (API key 51), versionless."""

    deletions: list[ScramCredentialDeletion] = field(factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(factory=list)


@mutable
class AlterUserScramCredentialsResult:
    user: str = ""
    error_code: int = 0
    error_message: str | None = None


@mutable
class AlterUserScramCredentialsResponse:
    """AlterUserScramCredentialsResponse (API key 51), versionless."""

    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = field(factory=list)


@mutable
class SaslHandshakeRequest:
    """SaslHandshakeRequest (API key 17), versionless."""

    mechanism: str = ""


@mutable
class SaslHandshakeResponse:
    """SaslHandshakeResponse (API key 17), versionless."""

    error_code: int = 0
    mechanisms: list[str] = field(factory=list)


@mutable
class SaslAuthenticateRequest:
    """SaslAuthenticateRequest (API key 36), versionless."""

    auth_bytes: bytes = field(default=b"", repr=False)


@mutable
class SaslAuthenticateResponse:
    """SaslAuthenticateResponse (API key 36), versionless."""

    error_code: int = 0
    error_message: str | None = None
    auth_bytes: bytes = field(default=b"", repr=False)
    session_lifetime_ms: int = 0


@mutable
class CreatableRenewers:
    principal_type: str = ""
    principal_name: str = ""


@mutable
class CreateDelegationTokenRequest:
    """CreateDelegationTokenRequest (API key 38), versionless."""

    owner_principal_type: str | None = None
    owner_principal_name: str | None = None
    renewers: list[CreatableRenewers] = field(factory=list)
    max_lifetime_ms: int = 0


@mutable
class CreateDelegationTokenResponse:
    """CreateDelegationTokenResponse (API key 38), versionless."""

    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", repr=False)
    throttle_time_ms: int = 0


@mutable
class RenewDelegationTokenRequest:
    """RenewDelegationTokenRequest (API key 39), versionless."""

    hmac: bytes = field(default=b"", repr=False)
    renew_period_ms: int = 0


@mutable
class RenewDelegationTokenResponse:
    """RenewDelegationTokenResponse (API key 39), versionless."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


@mutable
class ExpireDelegationTokenRequest:
    """ExpireDelegationTokenRequest (API key 40), versionless."""

    hmac: bytes = field(default=b"", repr=False)
    expiry_time_period_ms: int = 0


@mutable
class ExpireDelegationTokenResponse:
    """ExpireDelegationTokenResponse (API key 40), versionless."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0


@mutable
class DescribeDelegationTokenOwner:
    principal_type: str = ""
    principal_name: str = ""


@mutable
class DescribeDelegationTokenRequest:
    """DescribeDelegationTokenRequest (API key 41), versionless."""

    owners: list[DescribeDelegationTokenOwner] | None = None


@mutable
class DescribedDelegationTokenRenewer:
    principal_type: str = ""
    principal_name: str = ""


@mutable
class DescribedDelegationToken:
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", repr=False)
    renewers: list[DescribedDelegationTokenRenewer] = field(factory=list)


@mutable
class DescribeDelegationTokenResponse:
    """DescribeDelegationTokenResponse (API key 41), versionless."""

    error_code: int = 0
    tokens: list[DescribedDelegationToken] = field(factory=list)
    throttle_time_ms: int = 0
