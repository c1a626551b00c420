"""Placements: which brokers hold the partitions of a topic."""
