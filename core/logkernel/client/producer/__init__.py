"""The producer: records into batches, batches into produce requests.

batches       one batch, from its first record to its outcome
accumulator   machine: queues of batches by partition in a bounded pool
sequences     machine: idempotent sequences of a partition
transactions  machine: producer ids and transactions
sender        machine: from ready batches to produce requests and back
partitioning  which partition a record goes to
metrics       under Kafka's names
deliveries    what `send` returns
root, append, base  the calls of a producer, alike for threads and asyncio
producer      what users see;  aio_producer  its asyncio twin
"""
