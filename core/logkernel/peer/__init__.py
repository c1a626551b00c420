"""Connections to brokers, without I/O: for clients, and for brokers that talk to one another.

backoff  exponential waits with jitter
network  machine: connections, requests in flight, timeouts
"""
