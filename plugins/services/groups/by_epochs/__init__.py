"""What groups of KIP-848 and of Kafka Streams (KIP-1071) share: the coordinator makes a target, and leads each member
there step by step; epochs guard what members say.

values      the bytes of records that are alike, and of what records consist of
state       a member with its epochs and what it holds, and the group that keeps such members
steps       what a heartbeat finds of a member, and the state that it goes to
heartbeats  what a heartbeat may say
targets     when a new target may be made
timers      the time that a member has to give something up
commits     who may commit and fetch offsets

What is held is an argument here: a partition in one kind, a task in a role in the other. Who keeps whom from it, what
makes a group's epoch grow, and what an assignor is told differs, and stays with each kind.
"""
