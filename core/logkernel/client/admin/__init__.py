"""The admin client: the operations of `log.admin()`. All rooms are pure, except the clients.

plans         the parts of an operation: rounds of requests to nodes, and shared helpers
machine       machine: runs plans over the core of every client
settings      names, defaults and bounds
topics        create, delete, list, describe topics; more partitions; delete records
offsets       offsets of partitions by time
configs       describe and alter settings of topics, brokers, groups
groups        list, describe, delete groups of every kind; remove members
group_offsets committed offsets of consumer groups, start offsets of share groups
transactions  producers, transactions, hanging ones; abort, fence
placement     leaders, log directories, reassignments
cluster       brokers, features, quorum
access        ACLs, SCRAM users, client quotas
tokens        delegation tokens
client        the public class `Admin`;  aio_client its asyncio twin;  base what they share
"""
