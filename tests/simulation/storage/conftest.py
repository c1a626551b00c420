"""A log on either disk; see `log_store`."""

from log_store import new_ledger, simulated, store, store_type

__all__ = ["new_ledger", "simulated", "store", "store_type"]
