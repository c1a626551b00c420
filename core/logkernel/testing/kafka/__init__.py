"""A broker for tests of programs that talk to Kafka (decision 050).

kafka        `Kafka`: a broker of the test's own, its life and its time;  namespace: a part of a shared one
broker       the seam between a `Kafka` and its broker;  here: one in this process; `testing.child` has the other
cluster      `KafkaCluster`: several brokers;  cluster_log: reads and writes where a partition is led
view         what a test asks of each of the three: topics, records, groups, waits;  aio: the same, awaited;
             waiting: until it is so
folder       what is saved of a broker in a folder
clock, disk  what is lent to the broker: time that the test moves, files that outlive it;  due_work: what a jump
             of time makes due
watched      the transport "tcp" for it;  connection: the machine of each connection, which shows what clients ask;
             watch: what that asks of its broker
requests     what clients asked;  apis: names of what they may ask;  named: pure: which partitions a request is about
faults       pure: which requests are struck, and by what
records      what lies in topics;  matching: pure: does a record match, and where does it not
broker_log   what brokers log, for the report of a test that fails
"""
