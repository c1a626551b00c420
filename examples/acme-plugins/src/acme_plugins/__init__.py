"""Plugins for logkernel, as any other distribution may bring them."""
