"""Brokers of one machine in processes of their own: `logkernel serve --brokers N --processes`.

messages       frames of the coordination's socket; pure
coordination   the parent's side: `SharedStore` behind a UNIX socket
session        a child's side: `contracts.SharedCoordination` over that socket
"""
