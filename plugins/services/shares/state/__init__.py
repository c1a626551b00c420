"""The service `share-state`: the durable part of share-partitions, in __share_group_state.

records   the bytes
batches   delivery states of ranges of offsets, laid over one another
machine   the states of one partition of the topic
service   shards, splitting and joining
"""
