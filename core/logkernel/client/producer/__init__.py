"""The producer: records into batches, batches into produce requests.

batches       one batch, from its first record to its outcome
accumulator   machine: queues of batches by partition in a bounded pool
compression   which codec its batches are compressed with
sequences     machine: idempotent sequences of a partition
transactions  machine: producer ids and transactions
sender        machine: from ready batches to produce requests and back
partitioning  which partition a record goes to
metrics       under Kafka's names
deliveries    what `send` returns
outgoing      a record before it lies in a batch: interceptors, serializers
topics        how each topic is partitioned;  topic_partitioners  the partitioners that topics name themselves
append        the way of a record into its batch
transaction_calls  transactions as calls that wait
base          what both producers have: these parts, flushes, the end
producer      what users see;  aio_producer  its asyncio twin
"""
