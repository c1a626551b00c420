"""The consumer: positions, fetching, commits.

positions         machine: where a consumer stands in a partition, and what was fetched ahead
fetch_session     machine: one broker's incremental fetch session (KIP-227)
fetcher           machine: fetching ahead of the positions
arrow             what was fetched, taken as columns
commits           machine: committed offsets, one commit after the other
metrics           under Kafka's names
consumer_machine  machine: all of them and the group's member together
root, subscription, offset_calls, base  the calls of a consumer, alike for threads and asyncio
consumer          what users see;  aio_consumer  its asyncio twin
"""
