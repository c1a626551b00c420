"""Brokers of one process that form a cluster: what they share, and the way in.

store     the coordination that they share, a session each
network   requests from broker to broker, with cuts, pauses and kills
"""
