"""Assignors that the coordinator of a consumer group runs (KIP-848), one a module."""
