"""A tested broker in a process of its own, for tests in Python: `Kafka(process=True)` (decision 051).

broker       `BrokerProcess`: the process's life, and what outlives it
forked       starts processes quickly, and tells how they ended: asks for a fork of one that has everything imported;
             forking  is that one
control      calls of the control port, with the errors that it answers
log          what a view asks of the log;  clock, faults, requests  the same for these
structured   pure: from JSON to objects
"""
