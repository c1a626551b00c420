"""ISR policies: which followers of a partition count as in sync."""
