"""The administration of a cluster: what `log.admin()` can do. Pure, save `client`.

plans         what an operation is made of: rounds of questions to nodes, and helpers that many operations share
machine       machine: runs plans over the core of every client
settings      names, defaults and bounds
topics        create, delete, list, describe topics; more partitions; delete records
offsets       offsets of partitions by time
configs       describe and alter settings of topics, brokers, groups
groups        list, describe, delete groups of every kind; remove members
group_offsets committed offsets of consumer groups, start offsets of share groups
transactions  producers, transactions, those that hang; abort, fence
placement     leaders, log directories, reassignments
cluster       brokers, features, quorum
access        ACLs, SCRAM users, client quotas
client        what users see: `Admin`;  aio_client its asyncio twin;  base what they share
"""
