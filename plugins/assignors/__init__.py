"""Assignors of consumer groups whose coordinator assigns (KIP-848), one a module."""
