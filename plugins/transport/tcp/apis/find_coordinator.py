"""FindCoordinator (key 10), versions 0-6: which broker coordinates a group, transaction or share.

- The broker sees `coordinator_keys` and answers `coordinators` at every version; 0 to 3 ask for one `key`.
- Version 0 asks for groups only (`key_type` 0).
- Capabilities: "transaction_abortable" (5+), "share_coordinator" (6+).
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import UnsupportedVersion
from logkernel.requests.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

from ..api import Api


class FindCoordinator(Api):
    capabilities = (("transaction_abortable", 5), ("share_coordinator", 6))

    def upgrade_request(self, version: int, request: FindCoordinatorRequest) -> FindCoordinatorRequest:
        if version < 4:
            request.coordinator_keys = [request.key]
            request.key = ""
        return request

    def downgrade_response(self, version: int, response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        if version >= 4 or not response.coordinators:
            return response
        found = response.coordinators[0]
        return evolve(
            response,
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
            coordinators=[],
        )

    def downgrade_request(self, version: int, request: FindCoordinatorRequest) -> FindCoordinatorRequest:
        if version >= 4:
            return request
        if len(request.coordinator_keys) != 1:
            raise UnsupportedVersion(f"FindCoordinator version {version} asks for one key at a time")
        return evolve(request, key=request.coordinator_keys[0], coordinator_keys=[])

    def upgrade_response(self, version: int, response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        """Versions below 4 do not repeat the key; it stays ""."""
        if version < 4:
            row = Coordinator(
                node_id=response.node_id,
                host=response.host,
                port=response.port,
                error_code=response.error_code,
                error_message=response.error_message,
            )
            return FindCoordinatorResponse(throttle_time_ms=response.throttle_time_ms, coordinators=[row])
        return response
