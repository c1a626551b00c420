"""Connections to brokers: for clients, and for brokers that talk to one another.

backoff         exponential waits with jitter
network         machine, without I/O: connections, requests in flight, timeouts
loop_channels   carries out what that machine wants, on an event loop
"""
