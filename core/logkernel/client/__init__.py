"""Our own client: pure machines, and drivers that carry them over threads, asyncio or no wire at all.

settings    names, defaults and bounds of every setting
cluster     machines: metadata, calls with retries, queries to leaders
drivers     who steps the machines and does their I/O
membership  machines: the member of a group, by the classic protocol or KIP-848
producer    batches, sequences, transactions, the sender; what users see
consumer    positions, fetching, commits; what users see
admin       plans of operations and the machine that runs them; what users see

steps       what a call that waits is made of;  blocking, awaiting  how threads and asyncio carry it out
vocabulary  values and listeners that users of several clients meet
base        what users meet of every client: settings, metrics, open or closed
helpers     interceptors and metrics reporters
metrics     totals, and sample windows for rates and averages
serializers keys and values to bytes and back
shutdown    what the interpreter's exit and a fork do to clients
factory     makes the clients of a log, alike for all of them

The connections themselves are a room below: `logkernel.peer`.
"""
