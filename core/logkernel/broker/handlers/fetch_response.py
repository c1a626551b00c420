"""How the rows that a fetch read become its answer, a consumer's and a follower's alike."""

from __future__ import annotations

from logkernel.broker.fetch_sessions import FetchContext, Row
from logkernel.requests.data import FetchableTopicResponse, FetchResponse


def response_of(fetch: FetchContext, rows: list[Row]) -> FetchResponse:
    """Note `rows` in the session, and group those that the response holds by topic."""
    response = FetchResponse(session_id=fetch.session_id)
    last: tuple[str, object] | None = None
    for partition, data in fetch.answered(rows):
        topic = partition.key[:2]
        if topic != last:
            response.responses.append(FetchableTopicResponse(topic=topic[0], topic_id=topic[1]))
            last = topic
        response.responses[-1].partitions.append(data)
    return response
