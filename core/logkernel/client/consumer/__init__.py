"""The consumer: positions, fetching, commits.

positions         machine: where a consumer stands in a partition, and what was fetched ahead
fetch_session     machine: one broker's incremental fetch session (KIP-227)
fetcher           machine: fetching ahead of the positions
arrow             what was fetched, taken as columns
commits           machine: committed offsets, one commit after the other
metrics           under Kafka's names
consumer_machine  machine: all of them and the group's member together
reading           what the parts work on: the machine, and what iteration holds back
subscription      where it reads;  offset_calls  commits and queries;  poller  polls, and the group's events
base              what both consumers have: these parts, the end
consumer          what users see;  aio_consumer  its asyncio twin
"""
