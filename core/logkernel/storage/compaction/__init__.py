"""Rewriting the closed segments of a log, so that only what a keep-rule keeps is left.

compaction       which rewrite is under way in a log, and how far the last one came
rewriting        one rewrite: its phases, and what a crash finds between them
segment_writer   what is left, appended to the new segment
"""
