"""AddOffsetsToTxn (key 25), versions 0-4: a group's offsets join a transaction.

- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to versions below 2, which do not know it.
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import InvalidProducerEpoch, ProducerFenced
from logkernel.requests.transactions import AddOffsetsToTxnResponse

from ..api import Api


class AddOffsetsToTxn(Api):
    def downgrade_response(self, version: int, response: AddOffsetsToTxnResponse) -> AddOffsetsToTxnResponse:
        if version < 2 and response.error_code == ProducerFenced.code:
            return evolve(response, error_code=InvalidProducerEpoch.code)
        return response
