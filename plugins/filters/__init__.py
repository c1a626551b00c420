"""Fetch filters: which records of a topic its consumers get."""
