"""Settings of clients: one table each.

table     how a table is loaded, and the settings that all clients share
producer, consumer, admin  their tables
"""
