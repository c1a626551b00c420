"""Drivers: they step a client's machine and do its I/O.

driver           what all of them share: a turn
thread_driver    a thread over blocking channels
polling_driver   the caller of `poll()`, a thread while nobody polls
loop_driver      an event loop
embedded_driver  the caller, against a broker in this process
signals          signals held back until a turn is over
"""
