"""Membership in a consumer group. Pure.

base               what members of both protocols share
classic_member     the classic protocol: join, sync, heartbeat
kip848_member      KIP-848: the coordinator assigns
assignors          the classic protocol's assignors, run by the member that leads
consumer_protocol  the bytes that classic members leave for one another
"""
