"""UpdateFeatures (key 57), versions 0-2: finalize feature levels.

- Version 0 says `allow_downgrade` where later ones name an upgrade type: it is a safe downgrade.
- Answers to versions 0 and 1 have a row a feature; from 2 one error stands for all (KIP-1022).
- `validate_only` comes with version 1.
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.requests.quorum import UpdateFeaturesRequest, UpdateFeaturesResponse

from ..api import Api

SAFE_DOWNGRADE = 2


class UpdateFeatures(Api):
    def upgrade_request(self, version: int, request: UpdateFeaturesRequest) -> UpdateFeaturesRequest:
        if version == 0:
            for row in request.feature_updates:
                if row.allow_downgrade:
                    row.upgrade_type = SAFE_DOWNGRADE
        return request

    def downgrade_response(self, version: int, response: UpdateFeaturesResponse) -> UpdateFeaturesResponse:
        return evolve(response, results=[]) if version >= 2 else response
