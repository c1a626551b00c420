"""Our own client: pure machines, and drivers that carry them over threads, asyncio or no wire at all.

bootstrap     where a client begins
settings      names, defaults and bounds of every setting
backoff       exponential waits with jitter
network       machine: connections, requests in flight, timeouts
metadata      machine: brokers, topics, leaders, and when to ask again
core          machine: the two together, and calls that are tried until they succeed; every client's base
batches       one batch of a producer, from its first record to its outcome
accumulator   machine: queues of batches by partition in a bounded pool
sequences     machine: idempotent sequences of a partition
transactions  machine: producer ids and transactions
sender        machine: from ready batches to produce requests and back
partitioning  which partition a record goes to
metrics       rates, averages, counts
drivers       who steps the machines: thread_driver  a thread;  shared_driver  whoever polls, else a thread;
              loop_driver  an event loop;  embedded_driver  the caller
interrupts    signals that wait until a turn is over
asking        machine: questions that only leaders answer
positions     machine: where a consumer stands in a partition, and what was fetched ahead
fetcher       machine: fetch sessions; arrow takes what it fetched as columns
membership    what members of both group protocols are;  group  the classic one;  member  KIP-848
commits       machine: committed offsets, one commit after the other
consumption   machine: the consumer's machines together
face          what users meet of every client
steps         what a call that waits is made of;  blocking, awaiting  how threads and asyncio carry it out
consumer      what users see;  aio_consumer  its asyncio twin;  consumer_root, _places, _offsets, _base  their calls
admin         the admin client: plans, their machine, families of operations
producer      what users see;  aio_producer  its asyncio twin;  producer_root, _placing, _base, deliveries  their calls
any_broker    questions that every broker answers, blocking
making        clients of a log, alike for all of them
"""
