"""The tested broker in a process of its own, for tests in any language (decision 051): `logkernel test-server`.

main       its life: a `Kafka` or a `KafkaCluster`, the control port, the ready line; it ends with the process that
           started it
control    the control port: routes → what a `Kafka` or a `KafkaCluster` can do;  one_broker, several_brokers  what is
           said of the brokers themselves
body       pure: what a request to the control port says, checked
rows       pure: records, requests, faults and what is expected, as JSON
needed     what has to be installed
lifeline   whether the process that started this one is still there
"""
