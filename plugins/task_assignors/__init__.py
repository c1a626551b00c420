"""Assignors of the tasks of Kafka Streams that the coordinator of a group runs (KIP-1071), one a module."""
