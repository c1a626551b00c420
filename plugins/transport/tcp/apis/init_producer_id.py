"""InitProducerId (key 22), versions 0-5: an id and epoch for an idempotent or transactional producer.

- Versions 0 to 2 send no current id and epoch; the broker sees -1 and -1.
- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to versions below 4, which do not know it.
- Gap: version 6 (two-phase commit, KIP-939) is not advertised, as in Kafka 4.3.
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import InvalidProducerEpoch, ProducerFenced
from logkernel.requests.producers import InitProducerIdResponse

from ..api import Api


class InitProducerId(Api):
    def downgrade_response(self, version: int, response: InitProducerIdResponse) -> InitProducerIdResponse:
        if version < 4 and response.error_code == ProducerFenced.code:
            return evolve(response, error_code=InvalidProducerEpoch.code)
        return response
