"""EndTxn (key 26), versions 0-5: commit or abort.

- Version 5 is transactions v2 (KIP-890): the answer carries the producer id and epoch of the next transaction, which
  older versions do not have.
- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to versions below 2, which do not know it.
- Capability: "transactions_v2" (5+).
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import InvalidProducerEpoch, ProducerFenced
from logkernel.requests.transactions import EndTxnResponse

from ..api import Api


class EndTxn(Api):
    capabilities = (("transactions_v2", 5),)

    def downgrade_response(self, version: int, response: EndTxnResponse) -> EndTxnResponse:
        if version < 2 and response.error_code == ProducerFenced.code:
            return evolve(response, error_code=InvalidProducerEpoch.code)
        return response
