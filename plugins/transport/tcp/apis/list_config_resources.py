"""ListConfigResources (key 74), versions 0-1: what has settings.

- Version 0 (KIP-714's ListClientMetricsResources) asks for client metrics subscriptions alone, and is told names alone.
- From version 1 (KIP-1142) the request names types, none of them for all.
"""

from __future__ import annotations

from logkernel.errors import UnsupportedVersion
from logkernel.requests.configs import ListConfigResourcesRequest

from ..api import Api

CLIENT_METRICS = 16


class ListConfigResources(Api):
    def upgrade_request(self, version: int, request: ListConfigResourcesRequest) -> ListConfigResourcesRequest:
        if version == 0:
            request.resource_types = [CLIENT_METRICS]
        return request

    def downgrade_request(self, version: int, request: ListConfigResourcesRequest) -> ListConfigResourcesRequest:
        if version == 0 and request.resource_types != [CLIENT_METRICS]:
            raise UnsupportedVersion("ListConfigResources version 0 lists client metrics subscriptions only")
        return request
