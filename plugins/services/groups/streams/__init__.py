"""Groups of Kafka Streams (KIP-1071): the coordinator assigns an application's tasks, and makes its internal topics.

records          the bytes of __consumer_offsets
topology         what an application says of itself
configured       a topology beside the topics that there are: numbers of tasks, what is missing or wrong
state            a group, its members, the tasks that they hold
target           what the task assignor makes of the members
reconcile        one member's step towards its target
progress         from a heartbeat to the records of all that it changes
heartbeat        StreamsGroupHeartbeat
internal_topics  repartition and changelog topics
making           which of them are being made, and which could not be
endpoints        who serves which partitions
leaving          members that are gone, and the end of a group
describe         StreamsGroupDescribe
replay           the fold of a group's records
declared         the settings of such groups, and the broker's behind them
"""
