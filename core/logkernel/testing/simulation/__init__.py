"""Simulations of a cluster in one thread, from one seed."""
