"""Schemas of messages that kio lacks, in kio's form: those that brokers of Apache Kafka 3.9 exchange with ZooKeeper.

Each module is one API at the one version that is spoken, with its request and its response. The codec of `messages` and
kio's own reader and writer both work from these classes. They lack `from __future__ import annotations`, as both look
at the types of the fields.
"""
