"""The service `share-partitions`: hands records out to members and takes their word on them.

partition  one share-partition: which offset is in which state, and with whom (pure, no requests)
sessions   share sessions of members
reading    what a fetched slice holds, batch by batch
leader     a share-partition with its loading and its writes to share-state
fetching   ShareFetch: waiting, reading, acquiring, answering
acks       acknowledgements, alone and riding on ShareFetch
machine    `contracts.ServiceMachine`: dispatch, timers
service    `contracts.Service`
"""
