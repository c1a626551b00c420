"""Rewriting closed segments so that only what a keep-rule keeps is left."""
