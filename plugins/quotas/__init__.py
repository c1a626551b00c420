"""Quotas: how much of a topic clients may use."""
