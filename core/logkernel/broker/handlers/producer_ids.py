"""InitProducerId of an idempotent producer, where no transaction coordinator is hosted (`router.FALLBACKS`)."""

from __future__ import annotations

import logging

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import InvalidRequest, KafkaError
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger("logkernel.admin")


def init_producer_id(
    ctx: HandlerContext, request: InitProducerIdRequest, context: RequestContext, answer: Answer
) -> None:
    response = InitProducerIdResponse(producer_id=-1, producer_epoch=-1)
    if request.transactional_id is not None:
        response.error_code = InvalidRequest.code
        log.warning(
            "transactions are not served: client_id=%r transactional_id=%r", context.client_id, request.transactional_id
        )
        answer(response)
        return
    try:
        response.producer_id, response.producer_epoch = ctx.cluster.next_producer_id(), 0
    except KafkaError as error:
        response.error_code = error.code
    answer(response)


HANDLERS: Handlers = dict([on(InitProducerIdRequest, init_producer_id)])
